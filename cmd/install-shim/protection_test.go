package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// protectionOf asks status as a user.
func protectionOf(t *testing.T, uid int, path string) (by, changeable []string, said string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(binDir, "install-shim"), "status", "--json", path)
	cmd.Env = []string{"PATH=/nowhere"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	var got struct {
		Shims []struct {
			Protection struct{ By, Changeable []string }
		}
	}
	if err := json.Unmarshal(out, &got); err != nil || len(got.Shims) != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	return got.Shims[0].Protection.By, got.Shims[0].Protection.Changeable, stderr.String()
}

// TestProtection: what status says is what chmod(1) can do to PATH: exactly what it
// lists makes the user find the real program.
func TestProtection(t *testing.T) {
	d := disk(t, "ext4")
	top, tool := d+"/top", d+"/tool"
	shims, shim := top+"/shims", top+"/shims/tool"
	if err := os.Symlink(top, d+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Fatal(err)
	}
	as := func(uid int, path, script string) string {
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.Env, cmd.Dir = []string{"PATH=" + path + ":" + d + ":/usr/bin:/bin"}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		out, _ := cmd.CombinedOutput()
		return strings.TrimSpace(string(out))
	}
	owners := func(top, dir, file int) {
		for path, uid := range map[string]int{d + "/top": top, shims: dir, shim: file} {
			if err := os.Chown(path, uid, uid); err != nil {
				t.Fatal(err)
			}
		}
	}
	const user = 12345
	for _, row := range []struct {
		name           string
		uid            int
		top, dir, file int // who owns them
		with           func(on bool)
		by             []string
		changeable     []string
	}{
		// The next install replaces what is there.
		{name: "root, its own", by: []string{}, changeable: []string{shim}},
		{name: "a user, of root", uid: user, by: []string{"owner"}, changeable: []string{}},
		{name: "a user, all its own", uid: user, top: user, dir: user, file: user, by: []string{}, changeable: []string{top, shims, shim}},
		{name: "a user, its directory", uid: user, dir: user, by: []string{}, changeable: []string{shims}},
		{name: "a user, a directory above", uid: user, top: user, by: []string{}, changeable: []string{top}},
		{name: "a user, of another one", uid: user, file: user + 1, by: []string{"owner"}, changeable: []string{shim}},
		{name: "root, immutable", with: func(on bool) { chattr(t, on, shim) }, by: []string{"immutable"}, changeable: []string{}},
		{
			name: "a user, immutable in its own directory", uid: user, top: user, dir: user, file: user,
			with: func(on bool) { chattr(t, on, shim) }, by: []string{"immutable"}, changeable: []string{top, shims},
		},
		{
			name: "a user, all immutable", uid: user, top: user, dir: user, file: user,
			with: func(on bool) { chattr(t, on, shim, shims, top) }, by: []string{"immutable"}, changeable: []string{},
		},
		{name: "root, read-only", with: func(on bool) { readOnly(t, on, shims) }, by: []string{"read-only-mount"}, changeable: []string{}},
		{
			name: "a user, read-only below its own", uid: user, top: user, dir: user, file: user,
			with: func(on bool) { readOnly(t, on, shims) }, by: []string{"read-only-mount"}, changeable: []string{top},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			installShim(t, "install", "--dir", shims, "--real", tool, "tool")
			owners(row.top, row.dir, row.file)
			if row.with != nil {
				row.with(true)
				defer row.with(false)
			}
			for _, path := range []string{shims, d + "/link/shims"} {
				by, changeable, said := protectionOf(t, row.uid, path+"/tool")
				for i, c := range changeable {
					if c == path+"/tool" {
						changeable[i] = shim
					}
				}
				slices.Sort(changeable)
				if !slices.Equal(by, row.by) || !slices.Equal(changeable, row.changeable) {
					t.Errorf("%s: by %q, changeable %q, want %q, %q", path, by, changeable, row.by, row.changeable)
				}
				if strings.Contains(said, path+": fails open: a launch of uid") != (len(row.changeable) > 0) {
					t.Errorf("said %q", said)
				}
				if got := as(row.uid, path, "command -v tool"); got != path+"/tool" {
					t.Fatalf("PATH finds %s", got)
				}
				for _, each := range []string{top, shims, shim} {
					// Who installed it can do it, too.
					who := row.uid
					if each == shim && row.file > user {
						who = row.file
					}
					as(who, path, "chmod 000 "+each)
					past := as(row.uid, path, "command -v tool") != path+"/tool"
					if past != slices.Contains(row.changeable, each) {
						t.Errorf("after chmod 000 of %s PATH leads past the shim: %v", each, past)
					}
					_ = os.Chmod(each, 0o755)
				}
			}
		})
	}

	// In place, the name leads to nothing else.
	installShim(t, "install", "--in-place", tool)
	by, changeable, said := protectionOf(t, 0, tool)
	if !slices.Equal(by, []string{"in-place"}) || len(changeable) > 0 || said != "" {
		t.Errorf("in place: %q, %q, %q", by, changeable, said)
	}
	as(0, "/nowhere", "chmod 000 "+tool)
	if got := as(user, "/nowhere", "tool it works"); !strings.Contains(got, "ermission denied") {
		t.Errorf("in place, without a mode: %q", got)
	}
}

func chattr(t *testing.T, on bool, paths ...string) {
	t.Helper()
	flag := "-i"
	if on {
		flag = "+i"
	}
	if out, err := exec.Command("chattr", append([]string{flag}, paths...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// readOnly mounts a directory on itself.
func readOnly(t *testing.T, on bool, dir string) {
	t.Helper()
	if !on {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		return
	}
	err := unix.Mount(dir, dir, "", unix.MS_BIND, "")
	if err == nil {
		err = unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	if err != nil {
		t.Fatal(err)
	}
}
