package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// Nowhere is a path at which nothing is and nobody can make anything: sysfs has
// no mkdir(2).
const Nowhere = "/sys/nowhere"

// DefaultEnv is the environment of a [Cmd] whose Env is nil.
var DefaultEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + Nowhere, "LC_ALL=C"}

// A Cmd is one process to start. Nothing is added to what it says, and nothing
// is cleaned up: an environment may hold duplicates and strings without "=".
type Cmd struct {
	// Path is the file that execve is given.
	Path string
	// Args is the whole argv. nil means one element, Path.
	Args []string
	// Env is the whole environment but for the policy; nil means [DefaultEnv].
	Env []string
	// Dir is the working directory; "" means "/".
	Dir string
	// User starts the process.
	User User
	// Stdin is standard input; nil means /dev/null.
	Stdin io.Reader
	// Stdout and Stderr take the place of the captured ones.
	Stdout, Stderr *os.File
	// Closed lists descriptors of 0 to 2 that are closed.
	Closed []int
	// Extra become descriptors 3, 4, …; nil entries are closed.
	Extra []*os.File
	// Policy goes into the policy variable, at the end of the environment: a
	// string as it is, anything else as JSON. nil means that there is none.
	Policy any
	// PolicyEnv is another name of the variable.
	PolicyEnv string
	// FakeABI makes the process and its children see another Landlock ABI.
	FakeABI *ABI
	// Setup prepares the process between fork and the execve of Path.
	Setup *Setup
	// Timeout is when the process is killed, and its test fails. 0 means two
	// minutes.
	Timeout time.Duration
	// Sys is for namespaces, process groups and tracing; its Credential is
	// taken from User.
	Sys *syscall.SysProcAttr
}

// A Result is how a process ended and what it said.
type Result struct {
	Stdout, Stderr string
	// Code is the exit status, or -1 after death by a signal.
	Code int
	// Signal is the signal that killed the process, or 0.
	Signal syscall.Signal
	PID    int
}

func (r Result) String() string {
	end := fmt.Sprintf("exit %d", r.Code)
	if r.Signal != 0 {
		end = "killed by " + unix.SignalName(r.Signal)
	}
	return fmt.Sprintf("pid %d: %s\nstdout: %q\nstderr: %q", r.PID, end, r.Stdout, r.Stderr)
}

// A Process is a started [Cmd].
type Process struct {
	PID int

	proc           *os.Process
	stdout, stderr *os.File
	watchdog       *time.Timer
	fake           *fake
}

// hang is when a process that did not end is killed, and its test with it.
const hang = 2 * time.Minute

// Run starts the process and waits for its end. What its descendants still
// write after that is not waited for.
func (c Cmd) Run(tb testing.TB) Result {
	tb.Helper()
	return c.Start(tb).Wait(tb)
}

// Start starts the process. Call [Process.Wait] on the result.
func (c Cmd) Start(tb testing.TB) *Process {
	tb.Helper()
	p, err := c.start()
	if err != nil {
		tb.Fatalf("start %q: %v", c.Path, err)
	}
	return p
}

// StartError is [Cmd.Start] for a process that is not expected to start.
func (c Cmd) StartError() error {
	p, err := c.start()
	if err != nil {
		return err
	}
	_ = p.proc.Kill()
	_, _ = p.wait()
	return nil
}

// Kill sends a signal.
func (p *Process) Kill(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	if err := p.proc.Signal(sig); err != nil {
		tb.Fatal(err)
	}
}

// Wait waits for the end of the process.
func (p *Process) Wait(tb testing.TB) Result {
	tb.Helper()
	r, err := p.wait()
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func (p *Process) wait() (Result, error) {
	state, err := p.proc.Wait()
	if err != nil {
		return Result{}, err
	}
	if !p.watchdog.Stop() {
		return Result{}, fmt.Errorf("pid %d did not end and was killed\nstdout: %s\nstderr: %s", p.PID, text(p.stdout), text(p.stderr))
	}
	if err := p.fake.stop(); err != nil {
		return Result{}, err
	}
	r := Result{Stdout: text(p.stdout), Stderr: text(p.stderr), Code: state.ExitCode(), PID: p.PID}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.Signal = ws.Signal()
	}
	p.stdout.Close()
	p.stderr.Close()
	return r, nil
}

func (c Cmd) environ() ([]string, error) {
	env := c.Env
	if env == nil {
		env = DefaultEnv
	}
	name := c.PolicyEnv
	if name == "" {
		name = rules.DefaultPolicyEnv
	}
	switch p := c.Policy.(type) {
	case nil:
		return env, nil
	case string:
		return append(env[:len(env):len(env)], name+"="+p), nil
	default:
		data, err := json.Marshal(p)
		return append(env[:len(env):len(env)], name+"="+string(data)), err
	}
}

func (c Cmd) start() (*Process, error) {
	env, err := c.environ()
	if err != nil {
		return nil, err
	}
	argv := c.Args
	if argv == nil {
		argv = []string{c.Path}
	}
	p := &Process{}
	var ours []*os.File
	defer func() {
		for _, f := range ours {
			f.Close()
		}
	}()
	stdin, err := c.stdin()
	if err != nil {
		return nil, err
	}
	ours = append(ours, stdin)
	if p.stdout, err = memfd("stdout"); err != nil {
		return nil, err
	}
	if p.stderr, err = memfd("stderr"); err != nil {
		return nil, err
	}
	files := []*os.File{stdin, p.stdout, p.stderr}
	if c.Stdout != nil {
		files[1] = c.Stdout
	}
	if c.Stderr != nil {
		files[2] = c.Stderr
	}
	for _, fd := range c.Closed {
		files[fd] = nil
	}
	files = append(files, c.Extra...)

	sys := &syscall.SysProcAttr{}
	if c.Sys != nil {
		*sys = *c.Sys
	}
	sys.Credential = c.User.credential()
	path := c.Path
	if c.Setup != nil {
		// The stage changes the user itself: some steps need root.
		sys.Credential = nil
		script, err := c.script(env, argv)
		if err != nil {
			return nil, err
		}
		ours = append(ours, script)
		files = append(files, script)
		path, argv, env = "/proc/self/exe", []string{stageName}, []string{fmt.Sprintf("%s=%d", stageEnv, len(files)-1)}
	}
	dir := c.Dir
	if dir == "" {
		dir = "/"
	}
	attr := &os.ProcAttr{Dir: dir, Env: env, Files: files, Sys: sys}
	start := func() (err error) { p.proc, err = os.StartProcess(path, argv, attr); return err }
	if c.FakeABI != nil {
		p.fake, err = c.FakeABI.under(start)
	} else {
		err = start()
	}
	if err != nil {
		p.stdout.Close()
		p.stderr.Close()
		return nil, err
	}
	p.PID = p.proc.Pid
	limit := c.Timeout
	if limit == 0 {
		limit = hang
	}
	p.watchdog = time.AfterFunc(limit, func() { _ = p.proc.Kill() })
	return p, nil
}

func (c Cmd) stdin() (*os.File, error) {
	if c.Stdin == nil {
		return os.Open(os.DevNull)
	}
	if f, ok := c.Stdin.(*os.File); ok {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		return os.NewFile(uintptr(fd), f.Name()), err
	}
	f, err := memfd("stdin")
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(f, c.Stdin); err != nil {
		return nil, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}

// memfd makes an anonymous file: no pipe that a descendant could keep open, and
// no place that a policy could hide.
func memfd(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func text(f *os.File) string {
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.NewSectionReader(f, 0, 1<<40)); err != nil {
		return err.Error()
	}
	return b.String()
}

// Shell returns a Cmd that runs script with /bin/sh through the shim at path.
func Shell(path, script string, args ...string) Cmd {
	return Cmd{Path: path, Args: append([]string{"sh", "-c", script, "sh"}, args...)}
}

// Look returns the path of a program, symlinks kept.
func Look(tb testing.TB, name string) string {
	tb.Helper()
	if strings.Contains(name, "/") {
		return name
	}
	path, err := exec.LookPath(name)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}
