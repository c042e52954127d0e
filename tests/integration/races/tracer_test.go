package races

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A stop is the launch's main thread at the entry of a system call, or at its
// exit. Other threads of the shim make no calls that matter: the whole launch
// is done on the first one.
type stop struct {
	pid   int
	entry bool
	// nr and args are those of the call, ret is its result at an exit.
	nr   uint64
	args [6]uint64
	ret  int64
}

// An outcome is how a traced launch ended.
type outcome struct {
	// started is set when the program was started.
	started bool
	status  syscall.WaitStatus
	stderr  string
	// rounds holds what the program could read, see testdata/witness: first at
	// its start, then after the peer undid what it had done.
	rounds [][]string
}

func (o outcome) String() string {
	return fmt.Sprintf("started %v, status %#x, stderr %q, rounds %q", o.started, o.status, o.stderr, o.rounds)
}

// A watcher is called at each stop until it returns false: the launch then goes
// on without a tracer.
type watcher func(stop) (bool, error)

// A tracee is what to start. Its start and all that is done to it must be on
// one locked thread.
type tracee struct {
	path string
	argv []string
	env  []string
	sys  syscall.SysProcAttr
}

// patience is when a launch counts as hanging. It is killed, and the test fails.
const patience = 100 * time.Second

// run starts the launch, calls watch at its stops, and between, which may be
// nil, between the program's first and second round.
func (c tracee) run(watch watcher, between func() error) (o outcome, err error) {
	var files [3]*os.File // the tracee's ends
	var in, out *os.File
	if files[0], in, err = os.Pipe(); err != nil {
		return o, err
	}
	defer in.Close()
	defer files[0].Close()
	if out, files[1], err = os.Pipe(); err != nil {
		return o, err
	}
	defer out.Close()
	defer files[1].Close()
	fd, err := unix.MemfdCreate("stderr", unix.MFD_CLOEXEC)
	if err != nil {
		return o, err
	}
	files[2] = os.NewFile(uintptr(fd), "stderr")
	defer files[2].Close()

	sys := c.sys
	sys.Ptrace = true
	pid, err := syscall.ForkExec(c.path, c.argv, &syscall.ProcAttr{
		Dir: "/", Env: c.env, Sys: &sys, Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
	})
	files[0].Close()
	files[1].Close()
	if err != nil {
		return o, fmt.Errorf("start: %w", err)
	}
	hung := time.AfterFunc(patience, func() { _ = unix.Kill(pid, unix.SIGKILL) })
	var ended bool
	defer func() {
		if !ended {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = syscall.Wait4(pid, &o.status, syscall.WALL, nil)
		}
		if !hung.Stop() {
			err = errors.Join(err, fmt.Errorf("pid %d did not end and was killed", pid))
		}
		var text bytes.Buffer
		_, _ = io.Copy(&text, io.NewSectionReader(files[2], 0, 1<<20))
		o.stderr = text.String()
	}()

	ended, o.started, err = trace(pid, &o.status, watch)
	if err != nil || ended {
		return o, err
	}
	// The program runs on without a tracer.
	dec := json.NewDecoder(out)
	for round := range 2 {
		var answers []string
		if err := dec.Decode(&answers); err != nil {
			if errors.Is(err, io.EOF) && round == 0 && !o.started {
				break // detached early, and refused
			}
			return o, fmt.Errorf("round %d: %w", round, err)
		}
		o.started = true
		o.rounds = append(o.rounds, answers)
		if between == nil {
			break
		}
		if round == 0 {
			if err := between(); err != nil {
				return o, err
			}
			if _, err := in.Write([]byte("\n")); err != nil {
				return o, err
			}
		}
	}
	in.Close()
	_, err = syscall.Wait4(pid, &o.status, syscall.WALL, nil)
	ended = true
	return o, err
}

// trace follows the launch to its end, to the start of the program, or until
// watch wants no more.
func trace(pid int, status *syscall.WaitStatus, watch watcher) (ended, started bool, err error) {
	if _, err := syscall.Wait4(pid, status, syscall.WALL, nil); err != nil {
		return false, false, err
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL
	if err := syscall.PtraceSetOptions(pid, options); err != nil {
		return false, false, fmt.Errorf("PTRACE_SETOPTIONS: %w", err)
	}
	var last stop
	signal := 0
	for {
		if err := syscall.PtraceSyscall(pid, signal); err != nil {
			return false, false, fmt.Errorf("PTRACE_SYSCALL: %w", err)
		}
		signal = 0
		if _, err := syscall.Wait4(pid, status, syscall.WALL, nil); err != nil {
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			return false, false, err
		}
		switch {
		case status.Exited() || status.Signaled():
			return true, false, nil
		case status.StopSignal() == syscall.SIGTRAP|0x80:
			if err := last.read(pid); err != nil {
				return false, false, err
			}
			more, err := watch(last)
			if err != nil {
				return false, false, err
			}
			if !more {
				return false, false, detach(pid)
			}
		case status.TrapCause() == unix.PTRACE_EVENT_EXEC:
			return false, true, detach(pid)
		case status.StopSignal() != syscall.SIGTRAP:
			signal = int(status.StopSignal())
		}
	}
}

func detach(pid int) error {
	if err := syscall.PtraceDetach(pid); err != nil {
		return fmt.Errorf("PTRACE_DETACH: %w", err)
	}
	return nil
}

// read asks which call the tracee is at (ptrace(2), PTRACE_GET_SYSCALL_INFO).
func (s *stop) read(pid int) error {
	const getSyscallInfo = 0x420e
	const opEntry, opExit = 1, 2
	var info struct {
		op      uint8
		_       [3]uint8
		arch    uint32
		ip, sp  uint64
		payload [8]uint64
	}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(pid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return fmt.Errorf("PTRACE_GET_SYSCALL_INFO: %w", errno)
	}
	s.pid = pid
	switch info.op {
	case opEntry:
		s.entry, s.nr = true, info.payload[0]
		copy(s.args[:], info.payload[1:7])
	case opExit:
		s.entry, s.ret = false, int64(info.payload[0])
	default:
		return fmt.Errorf("PTRACE_GET_SYSCALL_INFO: neither entry nor exit (%d)", info.op)
	}
	return nil
}

// examines reports whether the tracee has just done fstat(2) on the inode.
func (s stop) examines(id inode) bool {
	if s.entry || s.nr != unix.SYS_FSTAT || s.ret != 0 {
		return false
	}
	var st unix.Stat_t
	err := unix.Stat(fmt.Sprintf("/proc/%d/fd/%d", s.pid, s.args[0]), &st)
	return err == nil && inode{st.Dev, st.Ino} == id
}

// An inode is the identity of a file.
type inode struct{ dev, ino uint64 }

// readsOpen reports whether the program could read at last what is not hidden.
func (o outcome) readsOpen() bool {
	return len(o.rounds) > 0 && o.rounds[len(o.rounds)-1][len(ownPaths)-1] == openText
}

// readsHidden returns the answer that shows hidden text, or "".
func (o outcome) readsHidden() string {
	for i, round := range o.rounds {
		for j, answer := range round {
			if strings.Contains(answer, hiddenText) {
				return fmt.Sprintf("round %d, %s: %q", i, ownPaths[j], answer)
			}
		}
	}
	return ""
}
