//go:build linux && (amd64 || arm64)

package boot_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

func TestLinkerFlagsAgreeWithConstants(t *testing.T) {
	t.Parallel()
	marker := binary.LittleEndian.AppendUint64(nil, boot.MarkerLow)
	marker = binary.LittleEndian.AppendUint64(marker, boot.MarkerHigh)
	marker = binary.BigEndian.AppendUint32(marker, boot.MarkerFormat)
	if got, want := ldflags(), fmt.Sprintf("-E %s -B %#x", boot.EntrySymbol, marker); got != want {
		t.Errorf("ldflags.mk gives %q, want %q", got, want)
	}
}

// The marker and the one magic must be there however the binary is built, and
// strip must not take them.
func TestMarkerAndMagic(t *testing.T) {
	t.Parallel()
	magic := bytes.Clone(boot.RecordBlock()[:boot.RecordMagicLen])
	for _, test := range []struct {
		name, flags, arch string
		machine           elf.Machine
	}{
		{"amd64", "", "amd64", elf.EM_X86_64},
		{"amd64 stripped by the linker", "-s -w", "amd64", elf.EM_X86_64},
		{"amd64 without a build id of Go", "-s -w -buildid=", "amd64", elf.EM_X86_64},
		{"arm64", "", "arm64", elf.EM_AARCH64},
		{"arm64 stripped by the linker", "-s -w", "arm64", elf.EM_AARCH64},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "shim")
			if err := build(file, "runner", test.flags+" "+ldflags(), "GOARCH="+test.arch); err != nil {
				t.Fatal(err)
			}
			check := func(what string) {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if !record.IsShim(text[:boot.HeaderSize]) {
					t.Errorf("%s: no marker in the first page", what)
				}
				if n := bytes.Count(text, magic); n != 1 {
					t.Errorf("%s: the magic occurs %d times", what, n)
				}
				program, err := elf.NewFile(bytes.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				if program.Machine != test.machine || program.Type != elf.ET_EXEC {
					t.Errorf("%s: %v %v", what, program.Machine, program.Type)
				}
				for _, p := range program.Progs {
					if p.Type == elf.PT_INTERP {
						t.Errorf("%s: has an interpreter", what)
					}
				}
			}
			check("built")
			strip := "strip"
			if test.arch != "amd64" {
				strip = "llvm-strip"
			}
			if _, err := exec.LookPath(strip); err != nil {
				t.Logf("not tried after strip: %v", err)
				return
			}
			if out, err := exec.Command(strip, file).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			check("after strip")
		})
	}
}

func TestOthersHaveNoMarker(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"/bin/true", "/bin/sh", plain, probe, "ldflags.mk", "/dev/null"} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if is, err := record.FileIsShim(f); is || err != nil {
			t.Errorf("%s: %v, %v", name, is, err)
		}
	}
	f, err := os.Open(runner)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if is, err := record.FileIsShim(f); !is || err != nil {
		t.Errorf("a shim: %v, %v", is, err)
	}
}

// A program that only reads and writes records does not hold the magic.
func TestReaderHasNoMagic(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reader")
	if err := build(file, "reader", ""); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, boot.RecordBlock()[:boot.RecordMagicLen]); n != 0 {
		t.Errorf("the magic occurs %d times", n)
	}
	// It does work: it finds the record of a shim.
	out, err := exec.Command(file, recorded(t, record.Record{Real: "/usr/bin/true"})).CombinedOutput()
	if err != nil || string(out) != "/usr/bin/true\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestWithoutTheEntry(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(plain)
	cmd.Env = []string{"BOOT_TEST_TARGET=/bin/true"}
	if got := finish(t, cmd); got.Exit != 125 || !strings.Contains(got.Stderr, "not entered") {
		t.Errorf("%+v", got)
	}
	// This test is such a program: nothing may be changed in it.
	if boot.Entered() || boot.SignalsHeld() || boot.Argv() != nil || boot.Envp() != nil || boot.ExecFn() != "" {
		t.Error("a program without the entry point thinks that it ran")
	}
	if _, ok := boot.Auxv(6); ok {
		t.Error("there is an auxiliary vector")
	}
	if err := boot.Exec("/bin/true", nil, nil); !errors.Is(err, boot.ErrNotEntered) {
		t.Errorf("Exec: %v", err)
	}
	boot.BlockSignals()
	boot.UnblockSignals()
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		t.Fatal(err)
	}
	if got := signals(t, string(status), "SigBlk"); got != 0 {
		t.Errorf("blocked signals: %x", got)
	}
}
