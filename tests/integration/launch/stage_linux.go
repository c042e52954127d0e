package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Setup is what a launcher may have done to a process before it starts the
// shim. The steps are done in the order of the fields, as the user who runs
// the tests and then as the user of the launch.
type Setup struct {
	// NoFile is the limit of open files, soft and hard. The tests themselves may
	// have been started with a low one: see [OpenFiles].
	NoFile *[2]uint64
	// Limits are further resource limits.
	Limits []Limit
	// Umask, or -1.
	Umask *int
	// Errno makes system calls fail in the process and its children. When the
	// tests run as root, no_new_privs is left alone.
	Errno []Errno
	// DropBounding takes capabilities out of the bounding set.
	DropBounding []int
	// KeepCapabilities keeps these capabilities, permitted, inheritable and
	// ambient, across the change of user.
	KeepCapabilities []int

	// NoNewPrivs is set as the user of the launch, like all below.
	NoNewPrivs bool
	// ParentDeath is PR_SET_PDEATHSIG.
	ParentDeath syscall.Signal
	// Ignore and Block are signals.
	Ignore, Block []syscall.Signal
	// Pending are blocked signals that the process sends itself.
	Pending []syscall.Signal
}

// A Limit is one resource limit (RLIMIT_*).
type Limit struct {
	Resource   int
	Soft, Hard uint64
}

// An Errno makes the system call Nr fail. With If, only calls whose first
// argument is Arg0 do. With Kill, the process that calls it dies of SIGSYS instead.
type Errno struct {
	Nr    uintptr
	If    bool
	Arg0  uint32
	Errno syscall.Errno
	Kill  bool
}

const (
	stageName = "sandbox-exec-shim-test-stage"
	stageEnv  = "SANDBOX_EXEC_SHIM_TEST_STAGE"
)

type script struct {
	Setup    Setup
	Change   bool
	UID, GID int
	Path     []byte
	Argv     [][]byte
	Env      [][]byte
	Closed   []int
}

func init() {
	if onStage() {
		// The thread that the process had when it was started is the one
		// whose parent-death signal survives execve.
		runtime.LockOSThread()
	}
}

func onStage() bool { return len(os.Args) == 1 && os.Args[0] == stageName && os.Getenv(stageEnv) != "" }

func (c Cmd) script(env, argv []string) (*os.File, error) {
	raw := func(list []string) (out [][]byte) {
		for _, s := range list {
			out = append(out, []byte(s))
		}
		return out
	}
	data, err := json.Marshal(script{
		Setup: *c.Setup, Change: c.User.credential() != nil, UID: c.User.UID, GID: c.User.GID,
		Path: []byte(c.Path), Argv: raw(argv), Env: raw(env), Closed: c.Closed,
	})
	if err != nil {
		return nil, err
	}
	f, err := memfd("script")
	if err != nil {
		return nil, err
	}
	_, err = f.WriteAt(data, 0)
	return f, err
}

// stage prepares this process and becomes the shim.
func stage() {
	err := play()
	fmt.Fprintf(os.Stderr, "test stage: %v\n", err)
	os.Exit(99)
}

func play() error {
	fd, err := strconv.Atoi(os.Getenv(stageEnv))
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "script")
	var s script
	if err := json.NewDecoder(f).Decode(&s); err != nil {
		return err
	}
	f.Close()
	if err := s.Setup.privileged(); err != nil {
		return err
	}
	if s.Change {
		if err := s.become(); err != nil {
			return err
		}
	}
	if err := s.Setup.unprivileged(); err != nil {
		return err
	}
	path := append(s.Path, 0)
	argv, env := vector(s.Argv), vector(s.Env)
	for _, fd := range s.Closed {
		_ = unix.Close(fd) // the runtime opened what was closed
	}
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(&path[0])),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
	runtime.KeepAlive(path)
	return fmt.Errorf("execve: %w", errno)
}

func vector(list [][]byte) []*byte {
	out := make([]*byte, 0, len(list)+1)
	for _, b := range list {
		b = append(b, 0)
		out = append(out, &b[0])
	}
	return append(out, nil)
}

func (s *Setup) privileged() error {
	if s.NoFile != nil {
		// By the system call: package syscall's own would be undone.
		lim := unix.Rlimit{Cur: s.NoFile[0], Max: s.NoFile[1]}
		if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &lim, nil); err != nil {
			return fmt.Errorf("prlimit: %w", err)
		}
	}
	for _, l := range s.Limits {
		lim := unix.Rlimit{Cur: l.Soft, Max: l.Hard}
		if err := unix.Prlimit(0, l.Resource, &lim, nil); err != nil {
			return fmt.Errorf("prlimit: %w", err)
		}
	}
	if s.Umask != nil {
		unix.Umask(*s.Umask)
	}
	for _, n := range s.DropBounding {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", n, err)
		}
	}
	if len(s.Errno) > 0 {
		if os.Geteuid() != 0 {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return err
			}
		}
		if _, err := installFilter(errnoFilter(s.Errno), 0); err != nil {
			return fmt.Errorf("seccomp: %w", err)
		}
	}
	if len(s.KeepCapabilities) > 0 {
		if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// become changes the user of this thread, which is the one that execve keeps.
func (s *script) become() error {
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return fmt.Errorf("setgroups: %w", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(s.GID), uintptr(s.GID), uintptr(s.GID)); e != 0 {
		return fmt.Errorf("setresgid: %w", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(s.UID), uintptr(s.UID), uintptr(s.UID)); e != 0 {
		return fmt.Errorf("setresuid: %w", e)
	}
	return nil
}

func (s *Setup) unprivileged() error {
	if len(s.KeepCapabilities) > 0 {
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		for _, n := range s.KeepCapabilities {
			bit := uint32(1) << (n % 32)
			data[n/32].Effective |= bit
			data[n/32].Permitted |= bit
			data[n/32].Inheritable |= bit
		}
		if err := unix.Capset(&hdr, &data[0]); err != nil {
			return fmt.Errorf("capset: %w", err)
		}
		for _, n := range s.KeepCapabilities {
			if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(n), 0, 0); err != nil {
				return fmt.Errorf("ambient capability %d: %w", n, err)
			}
		}
	}
	if s.NoNewPrivs {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	if s.ParentDeath != 0 {
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(s.ParentDeath), 0, 0, 0); err != nil {
			return err
		}
	}
	// The kernel's own calls: the runtime has handlers of its own for nearly
	// all signals, and execve keeps only what is ignored.
	for n := 1; n <= 64; n++ {
		var act sigaction
		for _, sig := range s.Ignore {
			if int(sig) == n {
				act.handler = sigIgn
			}
		}
		if n == int(unix.SIGKILL) || n == int(unix.SIGSTOP) {
			continue
		}
		if err := act.set(uintptr(n)); err != nil {
			return err
		}
	}
	var mask uint64
	for _, sig := range s.Block {
		mask |= 1 << (sig - 1)
	}
	const setmask = 2
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, setmask, uintptr(unsafe.Pointer(&mask)), 0, 8, 0, 0); e != 0 {
		return fmt.Errorf("rt_sigprocmask: %w", e)
	}
	for _, sig := range s.Pending {
		if _, _, e := unix.RawSyscall(unix.SYS_TGKILL, uintptr(unix.Getpid()), uintptr(unix.Gettid()), uintptr(sig)); e != 0 {
			return fmt.Errorf("tgkill: %w", e)
		}
	}
	return nil
}
