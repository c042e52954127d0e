package races

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

// hiddenText is in every file and in the name of every directory entry that
// the policy hides, and nowhere else.
const hiddenText = "hidden-text"

// A stage is a small root directory in a mount namespace of its own, so that a
// launch has few system calls and mounts disturb nobody:
//
//	bin/shim bin/witness proc/ report/
//	w/above/secret/            hidden
//	w/above/secret/hidden-text
//	w/above/secret/sub/f
//	w/above/key                hidden, a file
//	w/above/later              hidden, does not exist
//	w/above/new/token          hidden, does not exist
//	w/above/aside/ aside-file  siblings that the peer uses
//	w/above/decoy/             like secret, with other content
//	w/above/link               a symlink to secret
//	w/above/open/f             a sibling that the peer leaves alone
//	w/other/                   like above, with other content
//	w/bare/                    a directory without entries
//	hold/later                 what the peer puts at w/above/later
//
// Its methods must be called on one locked thread, that of [onStage].
type stage struct {
	root   string
	user   launch.User
	secret inode
	tracee tracee
	flips  []flip
}

// ownPaths are the paths of the hidden files and directories; the last one is
// of a file that is not hidden.
var ownPaths = []string{
	"/w/above/secret/hidden-text", "/w/above/secret/sub/f", "/w/above/secret", "/w/above/key",
	"/w/above/later/f", "/w/above/new/token", "/w/above/open/f",
}

const openText = "open"

// policy hides with secret at the end: once it was examined, all identities are
// known.
const policy = `{"version":1,"hidden":["/w/above/later","/w/above/new/token","/w/above/key","/w/above/secret"]}`

func witness(tb testing.TB, path string) {
	tb.Helper()
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "./testdata/witness")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build the witness: %v\n%s", err, out)
	}
}

// onStage builds a stage and calls f with it on a locked thread in its mount
// namespace. The thread ends with f.
func onStage(t *testing.T, u launch.User, f func(*stage) error) {
	t.Helper()
	s := build(t, u)
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the namespace ends with it
		err := errors.Join(pin(), s.enter())
		if err == nil {
			err = f(s)
		}
		done <- errors.Join(err, s.leave())
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// pin keeps this thread and what it starts on one processor: a tracer and its
// tracee never run at once, and wake each other much faster there.
func pin() error {
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	skip := int(stages.Add(1)) % allowed.Count()
	for cpu := 0; skip >= 0; cpu++ {
		if allowed.IsSet(cpu) {
			one.Zero()
			one.Set(cpu)
			skip--
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("sched_setaffinity: %w", err)
	}
	return nil
}

var stages atomic.Int32

func build(t *testing.T, u launch.User) *stage {
	t.Helper()
	launch.Need(t, launch.IsRoot, launch.Mounts, launch.Landlock)
	s := &stage{root: filepath.Join(launch.Dir(t), "root"), user: u}
	launch.Root.Mkdir(t, s.root, 0o755)
	for _, dir := range []string{"bin", "proc"} {
		launch.Root.Mkdir(t, s.at(dir), 0o755)
	}
	witness(t, s.at("bin/witness"))
	launch.Install(t, s.at("bin"), "shim", launch.Record{Real: "/bin/witness"})

	for _, dir := range []string{
		"report", "w", "w/above", "w/above/secret", "w/above/secret/sub", "w/above/aside", "w/above/decoy", "w/above/decoy/sub", "w/above/open",
		"w/other", "w/other/secret", "w/other/secret/sub", "w/other/open", "w/bare", "hold", "hold/later",
	} {
		u.Mkdir(t, s.at(dir), 0o755)
	}
	for path, text := range map[string]string{
		"w/above/secret/hidden-text": hiddenText, "w/above/secret/sub/f": hiddenText, "w/above/key": hiddenText, "hold/later/f": hiddenText,
		"w/above/decoy/hidden-name": "decoy", "w/above/decoy/sub/f": "decoy", "w/above/aside-file": "aside", "w/above/open/f": openText,
		"w/other/secret/sub/f": "other", "w/other/key": "other", "w/other/open/f": openText,
	} {
		u.Write(t, s.at(path), text, 0o644)
	}
	if err := os.Symlink("secret", s.at("w/above/link")); err != nil {
		t.Fatal(err)
	}
	u.Own(t, s.at("w/above/link"))

	var st unix.Stat_t
	if err := unix.Stat(s.at("w/above/secret"), &st); err != nil {
		t.Fatal(err)
	}
	s.secret = inode{st.Dev, st.Ino}
	s.tracee = tracee{
		path: "/bin/shim", argv: append([]string{"witness"}, ownPaths...),
		env: []string{"PATH=/bin", "SANDBOX_EXEC_SHIM_POLICY=" + policy},
		sys: syscall.SysProcAttr{Chroot: s.root, Credential: &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}},
	}
	s.flips = flips()
	return s
}

// at returns where a path of the stage is outside of it.
func (s *stage) at(path string) string { return filepath.Join(s.root, path) }

func (s *stage) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make / private: %w", err)
	}
	for _, m := range []struct{ from, to string }{{s.root, s.root}, {"/proc", s.at("proc")}} {
		if err := unix.Mount(m.from, m.to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", m.from, err)
		}
	}
	return nil
}

// leave takes the mounts away, or the directory could not be removed until the
// thread has ended.
func (s *stage) leave() error {
	return errors.Join(unix.Unmount(s.at("proc"), unix.MNT_DETACH), unix.Unmount(s.root, unix.MNT_DETACH))
}

// control makes a launch that nobody disturbs, with and without the policy.
func (s *stage) control() error {
	all := func(stop) (bool, error) { return true, nil }
	free := s.tracee
	free.env = []string{"PATH=/bin"}
	o, err := free.run(all, nil)
	if err != nil {
		return err
	}
	if len(o.rounds) != 1 || o.rounds[0][0] != hiddenText || o.rounds[0][3] != hiddenText || o.rounds[0][len(ownPaths)-1] != openText {
		return fmt.Errorf("without a policy: %v", o)
	}
	if o, err = s.tracee.run(all, nil); err != nil {
		return err
	}
	if len(o.rounds) != 1 {
		return fmt.Errorf("with the policy: %v", o)
	}
	for i, want := range []string{"EACCES", "EACCES", "EACCES", "EACCES", "ENOENT", "ENOENT", openText} {
		if got := o.rounds[0][i]; got != want {
			return fmt.Errorf("%s: %q, want %q", ownPaths[i], got, want)
		}
	}
	return nil
}

// judge checks the outcome of a launch that a peer disturbed: it was refused
// with 125, or the program could read no hidden file by its own path. It
// returns whether it was refused.
func judge(o outcome) (refused bool, err error) {
	if leak := o.readsHidden(); leak != "" {
		return false, fmt.Errorf("a hidden file was read: %s", leak)
	}
	if !o.started {
		if !o.status.Exited() || o.status.ExitStatus() != 125 {
			return false, fmt.Errorf("neither started nor refused: %v", o)
		}
		return true, nil
	}
	if !o.status.Exited() || o.status.ExitStatus() != 0 {
		return false, fmt.Errorf("the program did not end well: %v", o)
	}
	return false, nil
}
