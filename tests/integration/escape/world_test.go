package escape

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/escape/world"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

// program builds the program of the attempts, once, beside the shim.
func program(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(filepath.Dir(launch.Shim(tb)), "attempt")
	buildProgram.Do(func() {
		cmd := exec.Command("go", "build", "-o", path, "./testdata/attempt")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			errProgram = fmt.Errorf("build the attempts: %w\n%s", err, out)
		}
	})
	if errProgram != nil {
		tb.Fatal(errProgram)
	}
	return path
}

var (
	buildProgram sync.Once
	errProgram   error
)

// An attempt is what the test knows of one; see testdata/attempt.
type attempt struct {
	Name, Breaks, Limit, Needs, Rare string
	Root, User                       bool
}

func attempts(t *testing.T) []attempt {
	t.Helper()
	out, err := exec.Command(program(t), "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []attempt
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// A place is a world with what the test needs to start something in it.
type place struct {
	world.World
	user launch.User
	file string // the world, as JSON
	shim string
	// extra are what the launcher leaves open, from descriptor 3 on.
	extra []*os.File
	sys   *syscall.SysProcAttr
}

// newPlace makes a world. The calling test must have a machine of its own.
func newPlace(t *testing.T, u launch.User) *place {
	t.Helper()
	p := &place{user: u}
	p.Dir, p.Secret, p.UID, p.Other = u.Dir(t), "the hidden text", u.UID, u.UID
	p.tree(t)
	p.devices(t)
	p.Outsider = p.outsider(t)
	p.descriptors(t)
	p.file = filepath.Join(launch.Dir(t), "world")
	p.save(t)
	return p
}

func (p *place) at(name string) string { return filepath.Join(p.Dir, name) }

func (p *place) save(t *testing.T) {
	t.Helper()
	data, err := json.Marshal(p.World)
	if err != nil {
		t.Fatal(err)
	}
	launch.Root.Write(t, p.file, string(data), 0o644)
}

// tree makes the directories and files.
func (p *place) tree(t *testing.T) {
	t.Helper()
	u := p.user
	for _, dir := range []string{
		"hidden", "hidden/sub", "hidden/empty", "hidden/moved", "above", "above/hidden", "above/old", "twin", "twin/hidden",
		"work", "work/dir", "work/point", "outside", "outside/dir", "outside/sub", "outside/empty", "outside/empty-2", "shims", "mount",
	} {
		u.Mkdir(t, p.at(dir), 0o755)
	}
	for _, name := range []string{"hidden/key", "above/hidden/key", "outside/file", "outside/leased", "outside/accounting", "work/file", "hidden/public"} {
		u.Write(t, p.at(name), p.Secret, 0o600)
	}
	if err := os.Chmod(p.at("hidden/public"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, spare := range []string{
		"write", "append", "read-write", "open-truncate", "open-read-truncate", "truncate", "unlink", "unlinkat", "rename-out",
		"rename-over", "rename-within", "exchange", "whiteout", "ring-rename", "ring-unlink",
	} {
		u.Write(t, p.at("hidden/spare-"+spare), "spare", 0o600)
	}
	for _, spare := range []string{"truncate", "open-truncate", "unlink", "rename", "rename-2", "exchange"} {
		u.Write(t, p.at("outside/spare-"+spare), "spare", 0o600)
	}
	for name, target := range map[string]string{"work/key-link": "../hidden/key", "work/hidden-link": p.at("hidden"), "hidden/link": "key"} {
		if err := os.Symlink(target, p.at(name)); err != nil {
			t.Fatal(err)
		}
		u.Own(t, p.at(name))
	}
	u.Write(t, p.at("linked"), p.Secret, 0o600)
	if err := os.Link(p.at("linked"), p.at("work/other-name")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(p.at("hidden/fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.Own(t, p.at("hidden/fifo"))
	u.Own(t, launch.WriteProgram(t, p.at("hidden/script"), []byte("#!/bin/sh\nexit 0\n")))
	image := file(t, program(t))
	for _, name := range []string{"program", "hidden/program", "setuid", "setgid", "filecaps"} {
		u.Own(t, launch.WriteProgram(t, p.at(name), image))
	}
	u.Own(t, launch.WriteProgram(t, p.at("hidden/true"), file(t, launch.Look(t, "true"))))
	u.Own(t, launch.WriteProgram(t, p.at("hidden/library"), library(t)))
	u.Own(t, launch.Copy(t, p.at("shims"), "other"))
	p.shim = launch.Install(t, p.at("shims"), "attempt", launch.Record{Real: p.at("program")})
	u.Own(t, p.shim)
	p.privileged(t)
}

// privileged gives three programs what a confined process must not gain.
func (p *place) privileged(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	other := 0 // somebody else than who starts it
	if p.UID == 0 {
		other = launch.Nobody.UID
	}
	const netAdmin = 1 << unix.CAP_NET_ADMIN
	// struct vfs_cap_data of revision 2, effective.
	caps := []byte{1, 0, 0, 2, byte(netAdmin & 0xff), byte(netAdmin >> 8 & 0xff), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	for _, step := range []error{
		os.Chown(p.at("setuid"), other, other), os.Chmod(p.at("setuid"), 0o755|os.ModeSetuid),
		os.Chown(p.at("setgid"), p.UID, other), os.Chmod(p.at("setgid"), 0o755|os.ModeSetgid),
		unix.Setxattr(p.at("filecaps"), "security.capability", caps, 0),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
}

func file(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// library is one that any dynamic program can load.
func library(t *testing.T) []byte {
	t.Helper()
	for _, pattern := range []string{"/lib/*/libdl.so.2", "/lib64/libdl.so.2", "/usr/lib/libdl.so.2"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return file(t, found[0])
		}
	}
	return nil
}

// outsider starts the process outside.
func (p *place) outsider(t *testing.T) world.Outsider {
	t.Helper()
	p.file = filepath.Join(launch.Dir(t), "world")
	p.save(t)
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answer, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	proc := launch.Cmd{
		Path: p.at("program"), Args: []string{"attempt", "outside", p.file}, User: p.user,
		Dir: p.Dir, Stdin: in, Stdout: out, Sys: &syscall.SysProcAttr{Setsid: true},
	}.Start(t)
	in.Close()
	out.Close()
	t.Cleanup(func() {
		hold.Close()
		proc.Wait(t)
	})
	var o world.Outsider
	if err := json.NewDecoder(answer).Decode(&o); err != nil {
		hold.Close()
		t.Fatalf("the process outside did not start: %v: %v", err, proc.Wait(t))
	}
	answer.Close()
	return o
}

// command makes the attempts that would break one of the promises: through the
// shim with a policy, without one as a control.
func (p *place) command(policy any, promises []string) launch.Cmd {
	c := launch.Cmd{
		Path: p.at("program"), Args: append([]string{"attempt", "run", p.file}, promises...), User: p.user,
		Policy: policy, Extra: p.extra, Sys: p.sys, Dir: p.at("work"),
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "TMPDIR=" + p.at("work")},
	}
	if policy != nil {
		c.Path = p.shim
	}
	return c
}
