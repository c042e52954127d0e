package shim

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/confine"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

func TestMain(m *testing.M) {
	os.Exit(child.Main(m, map[string]child.Func{"launch": launchChild}))
}

// An attempt is one launch in a child, which does not end in execve: what a program
// would find is looked at in its place.
type attempt struct {
	Policy string // the variable's value; none without one
	Env    []string
	Argv   []string
	Record record.Record
	// Broken, Privileged and Unentered are how the start went wrong.
	Broken, Privileged string
	Unentered          bool
	// Fail is a system call that fails with Errno from the start.
	Fail  uintptr
	Errno unix.Errno
	// Exec is what execve gives, one after the other.
	Exec []unix.Errno
	// Read is opened and Open are descriptors asked for, where execve was to be.
	Read []string
	Open []int
}

type call struct {
	Path      string
	Argv, Env []string
}

type landing struct {
	Code   int
	Stderr string
	Calls  []call
	// Found is what was read and which descriptors were open, before execve.
	Found map[string]string
	// Reported is what the report held before execve.
	Reported string
}

func launchChild(in []byte) (any, error) {
	var a attempt
	if err := json.Unmarshal(in, &a); err != nil {
		return nil, err
	}
	said, err := unix.MemfdCreate("stderr", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup3(said, 2, 0); err != nil {
		return nil, err
	}
	out := landing{Found: map[string]string{}}
	c := &Call{
		Entered: !a.Unentered, Argv: a.Argv, Envp: slices.Clone(a.Env), ExecFn: "/proc/self/exe", Privileged: a.Privileged,
		Version: "test", Record: a.Record, Unblock: func() {},
	}
	if a.Policy != "" {
		c.Envp = append(c.Envp, "SANDBOX_EXEC_SHIM_POLICY="+a.Policy)
	}
	if a.Broken != "" {
		c.RecordErr = errors.New(a.Broken)
	}
	c.Exec = func(path string, argv, envp []string) error {
		if out.Calls == nil {
			for _, path := range a.Read {
				fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err == nil {
					unix.Close(fd)
				}
				out.Found[path] = unix.ErrnoName(errnoOf(err))
			}
			for _, fd := range a.Open {
				_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
				out.Found[strconv.Itoa(fd)] = unix.ErrnoName(errnoOf(err))
			}
			if a.Record.Report != "" {
				text, _ := os.ReadFile(a.Record.Report)
				out.Reported = string(text)
			}
		}
		out.Calls = append(out.Calls, call{path, argv, envp})
		if n := len(out.Calls); n <= len(a.Exec) {
			return a.Exec[n-1]
		}
		return unix.ENOEXEC
	}
	if a.Fail != 0 {
		if err := errnotest.Fail(errnotest.Call{Nr: a.Fail}, a.Errno); err != nil {
			return nil, err
		}
	}
	out.Code = Run(c)
	text := make([]byte, 1<<16)
	n, err := unix.Pread(2, text, 0) // the other number may be closed by now
	out.Stderr = string(text[:max(n, 0)])
	return out, err
}

func errnoOf(err error) unix.Errno {
	errno, _ := errors.AsType[unix.Errno](err)
	return errno
}

// run makes one launch of uid's, with a report at the record's place.
func run(t *testing.T, uid int, a attempt, extra ...*os.File) (landing, report.Report) {
	t.Helper()
	if a.Env == nil {
		a.Env = []string{"PATH=/usr/bin:/bin", "KEEP=me"}
	}
	if a.Argv == nil {
		a.Argv = []string{"prog", "one", "two"}
	}
	var out landing
	child.Run(t, uid, "launch", a, &out, extra...)
	var r report.Report
	if lines := strings.Split(out.Reported, "\n"); out.Reported != "" {
		errnotest.Must(t, json.Unmarshal([]byte(lines[0]), &r))
	}
	return out, r
}

// stage is a directory with a secret, and the place of a report.
func stage(t *testing.T) (dir string) {
	t.Helper()
	dir = child.Dir(t)
	errnotest.Must(t, os.Mkdir(dir+"/secret", 0o755))
	errnotest.Touch(t, dir+"/secret/f")
	errnotest.Touch(t, dir+"/free")
	return dir
}

func policy(keys string) string {
	return `{"version":1,"program":"/bin/true","descriptors":"keep","required":true,` + keys + `}`
}

func landlock(t *testing.T) {
	t.Helper()
	if k := confine.AskKernel(); k.ABI == 0 || k.NoSeccomp != "" {
		child.Unavailable(t, k.Unavailable+k.NoSeccomp)
	}
}
