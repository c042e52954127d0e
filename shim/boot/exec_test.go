//go:build linux && (amd64 || arm64)

package boot_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	s := state{
		Path: runner, Argv: byteSlices("a", "", "\xff"), Close: []int{0, 2},
		Env: byteSlices("BOOT_TEST_STEP=describe", "HOME=/x", "GODEBUG=schedtrace=1"),
	}
	want := `argv=["a" "" "\xff"] execfn="` + runner + `" closed=[true false true] uid=` + strconv.Itoa(os.Getuid()) + ` none=false os.Args=["shim"] os.Environ=3` + "\n"
	if got := finish(t, command(t, s)); got.Stdout != want {
		t.Errorf("got %+v, want %q", got, want)
	}
}

func TestExecAfterAFailure(t *testing.T) {
	t.Parallel()
	s := state{
		Path: "/bin/cat", Argv: byteSlices("cat", "/proc/self/status"), Ignore: []int{13, 15, 11}, Block: []int{2, 11, 17},
		Limits: map[int][2]uint64{7: {100, 200}},
	}
	want := finish(t, command(t, s))
	got := finish(t, command(t, throughRuntime(s, "retry")))
	if got.Exit != 0 || stable(got.Stdout) != stable(want.Stdout) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestExecCopiesForeignStrings(t *testing.T) {
	t.Parallel()
	s := state{Path: "/bin/cat", Argv: byteSlices("cat", "/proc/self/cmdline", "/proc/self/environ"), Env: byteSlices("A=1", "", "A=2", "B=\xff")}
	want := finish(t, command(t, s))
	if got := finish(t, command(t, throughRuntime(s, "copies"))); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	s.Path, s.Argv = "/bin/echo", byteSlices("echo", "abcdef")
	if got := finish(t, command(t, throughRuntime(s, "part"))); got.Stdout != "ab\n" {
		t.Errorf("part of an argument: %+v", got)
	}
}

// A bug in a shim is a panic, not a death by signal.
func TestNilPointerIsAPanic(t *testing.T) {
	t.Parallel()
	got := finish(t, command(t, state{Path: runner, Argv: byteSlices("x"), Env: byteSlices("BOOT_TEST_STEP=panic")}))
	if got.Exit != 125 || got.Stdout != "recovered\n" {
		t.Errorf("%+v", got)
	}
}

// What package doc says: os/signal gets nothing, and takes nothing away.
func TestNotifyGetsNothing(t *testing.T) {
	t.Parallel()
	h := hold(t, state{Path: "/bin/true", Argv: byteSlices("true")}, "notify")
	send(t, h, syscall.SIGUSR1)
	if got := h.finish(t); got.Signal != syscall.SIGUSR1 {
		t.Errorf("%+v", got)
	}
}

// All of the runtime's threads must block all signals: this is what the
// clearing of its table is for, and what a later runtime could break.
func TestEveryThreadBlocksSignals(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"hold", "threads"} {
		h := hold(t, state{Path: "/bin/true", Argv: byteSlices("true")}, step)
		masks := threadMasks(t, h.Process.Pid)
		if len(masks) < 3 {
			t.Errorf("only %d threads: this is no test", len(masks))
		}
		for tid, mask := range masks {
			const kill, stop = 1 << 8, 1 << 18
			// A thread that is just making another blocks the faults too.
			if want := ^uint64(kill | stop); mask|faults != want {
				t.Errorf("%s: thread %s blocks %x, want %x, with or without the faults", step, tid, mask, want)
			}
		}
		if got := h.finish(t); got.Exit != 0 {
			t.Errorf("%+v", got)
		}
	}
}
