package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An operation is one thing that a probe tries. Nothing is changed by any of
// them: what is created is removed again, and what exists is opened for writing
// without a byte being written.
type operation string

const (
	opRead    operation = "read"
	opList    operation = "list"
	opWrite   operation = "write"
	opCreate  operation = "create"
	opExecute operation = "execute"
	opStat    operation = "stat"
	// opUse makes a file in a directory, writes, reads and lists it, and removes it.
	opUse operation = "use"
	// opAppend writes a line at the end of a file and reads it. It is for files
	// that the probe made itself.
	opAppend operation = "append"
)

// A try is one operation on one path or inherited descriptor.
type try struct {
	Op   operation `json:"op"`
	Path string    `json:"path,omitempty"`
	// FD, if not 0, is an inherited descriptor that is tried in place of Path.
	FD int `json:"fd,omitempty"`
	// Dev and Ino tell whether FD is still the one that was opened: its number
	// may be in use again.
	Dev uint64 `json:"dev,omitempty"`
	Ino uint64 `json:"ino,omitempty"`
}

// An outcome is what came of a try. Errno is its name, or "" for success.
type outcome struct {
	Errno string `json:"errno,omitempty"`
	// Detail is an error that has no errno.
	Detail string `json:"detail,omitempty"`
}

func (o outcome) allowed() bool { return o.Errno == "" && o.Detail == "" }

// String is what tables and JSON call the outcome.
func (o outcome) String() string {
	switch {
	case o.allowed():
		return "allowed"
	case o.absent():
		return "absent"
	default:
		return "denied"
	}
}

// absent: there is nothing at the path, so nothing was denied.
func (o outcome) absent() bool { return o.Errno == "ENOENT" || o.Errno == "ENOTDIR" }

// make does the operation.
func (t try) make() outcome { return outcomeOf(t.do()) }

func outcomeOf(err error) outcome {
	var errno syscall.Errno
	switch {
	case err == nil:
		return outcome{}
	case errors.As(err, &errno):
		return outcome{Errno: unix.ErrnoName(errno)}
	default:
		return outcome{Detail: err.Error()}
	}
}

func (t try) do() error {
	name := t.Path
	if t.FD != 0 {
		var st unix.Stat_t
		if err := unix.Fstat(t.FD, &st); err != nil || uint64(st.Dev) != t.Dev || st.Ino != t.Ino {
			return unix.EBADF // closed
		}
		// The descriptor itself, and a fresh open through it.
		if use(t.FD, t.Op) == nil {
			return nil
		}
		name = "/proc/self/fd/" + strconv.Itoa(t.FD)
	}
	switch t.Op {
	case opRead:
		return openAnd(t.Op, name, unix.O_RDONLY)
	case opList:
		return openAnd(t.Op, name, unix.O_RDONLY|unix.O_DIRECTORY)
	case opWrite:
		return openAnd(t.Op, name, unix.O_WRONLY|unix.O_APPEND)
	case opCreate:
		if err := openAnd(t.Op, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL); err != nil {
			return err
		}
		return unix.Unlink(name)
	case opExecute:
		return wouldExecute(name)
	case opStat:
		_, err := os.Stat(name)
		return err
	case opUse:
		return useDirectory(name)
	case opAppend:
		return appendLine(name)
	default:
		return fmt.Errorf("unknown operation %q", t.Op)
	}
}

const tryFlags = unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// openAnd opens a file and does with it what the operation is about.
func openAnd(op operation, name string, flags int) error {
	fd, err := unix.Open(name, flags|tryFlags, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return use(fd, op)
}

// use tries what an open descriptor gives. To write it is enough to be open.
func use(fd int, op operation) (err error) {
	switch op {
	case opRead:
		_, err = unix.Read(fd, make([]byte, 1))
	case opList:
		_, err = unix.ReadDirent(fd, make([]byte, 4096))
	}
	return err
}

// useDirectory does in a directory what its owner does.
func useDirectory(dir string) error {
	name := probeFile(dir)
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(name)
	if err := appendLine(name); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == path.Base(name) }) {
		return errors.New("the new file is not in the list")
	}
	return os.Remove(name)
}

func appendLine(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString("probe\n"); err != nil {
		return err
	}
	text, err := os.ReadFile(name)
	if err == nil && !strings.HasSuffix(string(text), "probe\n") {
		err = errors.New("read something else than was written")
	}
	return err
}

// probeFile is a name that nothing else uses.
func probeFile(dir string) string {
	return path.Join(dir, fmt.Sprintf(".install-shim-probe-%d", os.Getpid()))
}

// wouldExecute asks whether execve would start the file, which never runs.
func wouldExecute(name string) error {
	errno := executeCheck(name)
	if errno == 0 {
		return nil
	}
	if errno != unix.EINVAL && errno != unix.ENOSYS {
		return errno
	}
	return tracedExecute(name)
}

// tracedExecute is wouldExecute for an older kernel: a traced process stops
// before its first instruction (ptrace(2)), and goes no further.
func tracedExecute(name string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return nil
}

// execveCheck is AT_EXECVE_CHECK of linux/fcntl.h.
const execveCheck = 0x10000

// executeCheck makes the kernel check an execve without doing it
// (AT_EXECVE_CHECK of execveat(2), Linux 6.14). An older kernel does not know the
// flag and answers EINVAL.
func executeCheck(name string) syscall.Errno {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return unix.ENOENT
	}
	argv, envp, cwd := [2]*byte{p}, [1]*byte{}, unix.AT_FDCWD
	_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(cwd), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envp[0])), execveCheck, 0)
	return errno
}

// HelperEnv makes this program the target of a probe: see [Helper].
const HelperEnv = "INSTALL_SHIM_PROBE_HELPER"

// Helper makes the tries that it reads and writes what came of them.
func Helper(in io.Reader, out io.Writer) error {
	var tries []try
	if err := json.NewDecoder(in).Decode(&tries); err != nil {
		return fmt.Errorf("read tries: %w", err)
	}
	outcomes := make([]outcome, len(tries))
	for i, t := range tries {
		outcomes[i] = t.make()
	}
	return json.NewEncoder(out).Encode(outcomes)
}
