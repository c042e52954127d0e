package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// TestNoMomentWithout starts the program again and again while installs take
// its name.
func TestNoMomentWithout(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := copyFile("/bin/echo", program, 0o755); err != nil {
		t.Fatal(err)
	}
	const rounds = 20
	for range rounds {
		done := make(chan error, 1)
		go func() {
			done <- exec.Command(filepath.Join(binDir, "install-shim"), "install", "--in-place", program).Run()
		}()
		launches := 0
		for running := true; running; launches++ {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
			}
			mustEcho(t, program, "during an install")
		}
		if launches < 2 {
			t.Fatalf("only %d launches", launches)
		}
		installShim(t, "uninstall", "--in-place", program)
	}
}

// TestReplaceRunning updates a shim that is being executed: its file cannot be
// written to, and what runs must go on with the old one.
func TestReplaceRunning(t *testing.T) {
	dir := t.TempDir()
	program, shims := filepath.Join(dir, "program"), filepath.Join(dir, "shims")
	if err := copyFile("/bin/echo", program, 0o755); err != nil {
		t.Fatal(err)
	}
	installShim(t, "install", "--dir", shims, "--real", program, "name")
	path := filepath.Join(shims, "name")

	// A traced program stops before its first instruction.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out := filepath.Join(dir, "out")
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := os.StartProcess(path, []string{"name", "still here"}, &os.ProcAttr{
		Files: []*os.File{nil, f, f},
		Sys:   &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.Pid, &status, 0, nil); err != nil || !status.Stopped() {
		t.Fatalf("wait: %v, %v", err, status)
	}
	if w, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
		w.Close()
		t.Fatal("the shim is not running: its file can be written to")
	}
	installShim(t, "install", "--dir", shims, "--real", program, "--argv0", "real", "name")
	if err := syscall.PtraceDetach(p.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(p.Pid, &status, 0, nil); err != nil || status.ExitStatus() != 0 {
		t.Fatalf("wait: %v, %v", err, status)
	}
	text, err := os.ReadFile(out)
	if err != nil || string(text) != "still here\n" {
		t.Fatalf("%v, %q", err, text)
	}
}
