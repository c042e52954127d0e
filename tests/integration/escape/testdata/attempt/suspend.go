package main

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// suspend traces a child and takes its filter off, as checkpointing does
// (PTRACE_O_SUSPEND_SECCOMP, ptrace(2)).
func suspend(w *w) error {
	cmd := exec.Command(w.at("program"), "socket")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return setup(err)
	}
	if _, err := unix.Wait4(cmd.Process.Pid, nil, 0, nil); err != nil { // it stops at execve
		return setup(err)
	}
	const suspendSeccomp = 1 << 21
	err := unix.PtraceSetOptions(cmd.Process.Pid, suspendSeccomp)
	if errors.Is(err, unix.EINVAL) {
		return missing("checkpoints")
	}
	if err != nil {
		_ = cmd.Process.Kill()
		return err
	}
	for signal := 0; ; {
		if err := unix.PtraceCont(cmd.Process.Pid, signal); err != nil {
			return setup(err)
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(cmd.Process.Pid, &status, 0, nil); err != nil {
			return setup(err)
		}
		switch {
		case status.Exited() && status.ExitStatus() == 0:
			return nil
		case status.Exited():
			return unix.EACCES
		case status.Stopped():
			signal = int(status.StopSignal())
		}
	}
}
