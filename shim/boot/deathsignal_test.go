//go:build linux && (amd64 || arm64)

package boot_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestDeathSignalIsKept(t *testing.T) {
	t.Parallel()
	s := state{Path: probe, Argv: byteSlices("probe"), DeathSig: int(syscall.SIGURG)}
	const want = "deathsig=23 "
	if got := finish(t, command(t, s)); !strings.HasPrefix(got.Stdout, want) {
		t.Fatalf("the launcher itself gave %+v", got)
	}
	cmd := command(t, throughRuntime(s, ""))
	for i := range 200 {
		if got := finish(t, exec.Command(cmd.Path, cmd.Args[1:]...)); !strings.HasPrefix(got.Stdout, want) {
			t.Fatalf("launch %d: %+v", i, got)
		}
	}
	h := hold(t, s, "threads")
	if got := h.finish(t); !strings.HasPrefix(got.Stdout, want) {
		t.Errorf("with many threads: %+v", got)
	}
}

// The runtime must not leave a preemption signal behind.
func TestNoSignalOfTheRuntimeIsLeft(t *testing.T) {
	t.Parallel()
	s := state{
		Path: "/bin/cat", Argv: byteSlices("cat", "/proc/self/status"),
		Block: []int{int(syscall.SIGURG), int(syscall.SIGPROF), 32, 33, 34},
	}
	for range 5 {
		got := finish(t, command(t, throughRuntime(s, "busy")))
		if got.Exit != 0 || pending(t, got.Stdout) != 0 {
			t.Fatalf("%+v", got)
		}
	}
}
