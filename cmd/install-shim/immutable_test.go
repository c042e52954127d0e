package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// disk mounts a file system of its own, which knows the flag where it is ext4. Nothing
// below it can be removed while it has the flag, so the whole is unmounted.
func disk(t *testing.T, kind string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, who may set the flag and mount")
	}
	at, err := os.MkdirTemp("/var/tmp", "install-shim-disk-") // all users may pass it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(at) })
	from, options := "none", "rw"
	if kind == "ext4" {
		from, options = filepath.Join(t.TempDir(), "image"), "loop"
		if err := os.WriteFile(from, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(from, 64<<20); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mkfs.ext4", "-q", "-F", from).CombinedOutput(); err != nil {
			missing(t, "mkfs.ext4: "+err.Error()+"\n"+string(out))
		}
	}
	if out, err := exec.Command("mount", "-t", kind, "-o", options, from, at).CombinedOutput(); err != nil {
		missing(t, "a mount of "+kind+": "+err.Error()+"\n"+string(out))
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := copyFile("/bin/echo", at+"/tool", 0o755); err != nil {
		t.Fatal(err)
	}
	return at
}

// flagged reports whether a file has the flag, asked from the kernel and by trying.
func flagged(t *testing.T, path string) bool {
	t.Helper()
	var stx unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BASIC_STATS, &stx); err != nil {
		t.Fatal(err)
	}
	has := stx.Attributes&unix.STATX_ATTR_IMMUTABLE != 0
	for what, err := range map[string]error{
		"chmod": os.Chmod(path, os.FileMode(stx.Mode&0o777)), "chown": os.Chown(path, int(stx.Uid), int(stx.Gid)),
		"setxattr": unix.Setxattr(path, "user.x", nil, 0), "link": os.Link(path, path+"-link"),
	} {
		if errors.Is(err, unix.EPERM) != has || !has && err != nil {
			t.Errorf("%s %s: %v, with the flag %v", what, path, err, has)
		}
	}
	_ = os.Remove(path + "-link")
	return has
}

// calling runs install-shim and returns what it said, its exit code in front.
func calling(t *testing.T, with []string, args ...string) string {
	t.Helper()
	all := append(append([]string{}, with...), filepath.Join(binDir, "install-shim"))
	all = append(all, args...)
	cmd := exec.Command(all[0], all[1:]...)
	out, err := cmd.CombinedOutput()
	code := "0 "
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		code = "1 "
	} else if err != nil {
		t.Fatal(err)
	}
	return code + string(out)
}

// want asks for an exit code and a text in what a call said.
func want(t *testing.T, said, code, text string) {
	t.Helper()
	if !strings.HasPrefix(said, code+" ") || !strings.Contains(said, text) {
		t.Errorf("%s\nwant %s, %q", said, code, text)
	}
}

// without is root as in a container: without CAP_LINUX_IMMUTABLE.
var without = []string{"setpriv", "--bounding-set", "-linux_immutable", "--inh-caps", "-linux_immutable"}

func wantFlags(t *testing.T, want bool, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if got := flagged(t, p); got != want {
			t.Errorf("%s: immutable %v, want %v", p, got, want)
		}
	}
}

// TestImmutableInADirectory: the flag is set, kept by the next install, and taken off.
func TestImmutableInADirectory(t *testing.T) {
	d := disk(t, "ext4")
	shims, shim := d+"/shims", d+"/shims/tool"
	install := []string{"install", "--dir", shims, "--real", d + "/tool", "tool"}
	immutable := []string{"install", "--immutable", "--dir", shims, "--real", d + "/tool", "tool"}
	want(t, calling(t, nil, install...), "0", "fails open: a launch of uid 0 could change the mode of "+shim+";")
	wantFlags(t, false, shim)
	said := calling(t, nil, immutable...)
	want(t, said, "0", "unchanged "+shim+" -> "+d+"/tool (immutable)\n")
	if strings.Contains(said, "fails open") {
		t.Error(said)
	}
	wantFlags(t, true, shim)
	wantFlags(t, false, d+"/tool")
	mustEcho(t, shim, "immutable")
	want(t, calling(t, nil, "status", "--dir", shims), "0", "protection: immutable\n")

	want(t, calling(t, nil, "install", "--dir", shims, "--real", d+"/tool", "--argv0", "real", "tool"), "0", "updated "+shim)
	wantFlags(t, true, shim)
	want(t, calling(t, nil, "status", shim), "0", "argv[0]: real")

	for _, args := range [][]string{install, immutable, {"uninstall", "--dir", shims, "tool"}} {
		want(t, calling(t, without, args...), "1", shim+": is immutable (chattr), and to take that off: needs CAP_LINUX_IMMUTABLE")
		wantNames(t, shims, "tool")
		wantFlags(t, true, shim)
	}
	if _, err := exec.LookPath("strace"); err != nil {
		missing(t, "strace")
	}
	broken := []string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=renameat2:error=EIO"}
	want(t, calling(t, broken, install...), "1", "input/output error")
	wantFlags(t, true, shim)
	want(t, calling(t, nil, "status", shim), "0", "argv[0]: real")

	want(t, calling(t, nil, "uninstall", "--dir", shims, "tool"), "0", "removed "+shim)
	wantNames(t, shims)
}

// TestImmutableInPlace: likewise, with the program behind the shim, which comes back as
// it was.
func TestImmutableInPlace(t *testing.T) {
	d := disk(t, "ext4")
	tool, real := d+"/tool", d+"/tool"+record.InPlaceSuffix
	var was, is unix.Stat_t
	if err := unix.Stat(tool, &was); err != nil {
		t.Fatal(err)
	}
	want(t, calling(t, nil, "install", "--in-place", "--immutable", tool), "0", "installed "+tool+" -> "+real+" (both immutable)\n")
	wantFlags(t, true, tool, real)
	mustEcho(t, tool, "immutable")
	want(t, calling(t, nil, "status", tool), "0", "protection: immutable, in place (closed, not open)\n")
	want(t, calling(t, nil, "install", "--in-place", "--argv0", "real", tool), "0", "updated "+tool)
	wantFlags(t, true, tool, real)
	want(t, calling(t, without, "uninstall", "--in-place", tool), "1", "needs CAP_LINUX_IMMUTABLE")
	wantFlags(t, true, tool, real)
	want(t, calling(t, nil, "uninstall", "--in-place", tool), "0", "restored "+tool)
	wantFlags(t, false, tool)
	if err := unix.Stat(tool, &is); err != nil || is.Ino != was.Ino {
		t.Errorf("inode %d, was %d, %v", is.Ino, was.Ino, err)
	}

	// A program that is immutable by itself is somebody else's.
	if out, err := exec.Command("chattr", "+i", tool).CombinedOutput(); err != nil {
		missing(t, "chattr: "+string(out))
	}
	want(t, calling(t, nil, "install", "--in-place", "--immutable", tool), "1", "is immutable or append-only (chattr)")
	wantNames(t, d, "tool", "lost+found")
	if out, err := exec.Command("chattr", "-i", tool).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}

	// What would make other names immutable is left.
	if err := os.Link(tool, d+"/other"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/echo", d+"/sym"); err != nil {
		t.Fatal(err)
	}
	want(t, calling(t, nil, "install", "--in-place", "--immutable", tool), "0", "has other names (hard links)")
	wantFlags(t, true, tool)
	wantFlags(t, false, real)
	want(t, calling(t, nil, "install", "--in-place", "--immutable", d+"/sym"), "0", "is a symbolic link, which cannot be immutable")
	wantFlags(t, true, d+"/sym")
	want(t, calling(t, nil, "uninstall", "--in-place", tool, d+"/sym"), "0", "restored "+d+"/sym")
	wantFlags(t, false, tool)
}

// TestImmutableRefused: where the flag is not to be had, the install stands.
func TestImmutableRefused(t *testing.T) {
	for _, row := range []struct {
		name, kind, why string
		with            []string
	}{
		{"without the capability", "ext4", "needs CAP_LINUX_IMMUTABLE", without},
		{"without flags", "ramfs", "its file system has no such flag", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := disk(t, row.kind)
			said := calling(t, row.with, "install", "--immutable", "--dir", d+"/shims", "--real", "/bin/echo", "tool")
			want(t, said, "0", "warning: "+d+"/shims/tool: is installed and not immutable: "+row.why+"\n")
			want(t, said, "0", "installed "+d+"/shims/tool -> /bin/echo\n")
			want(t, said, "0", "fails open: a launch of uid 0")
			mustEcho(t, d+"/shims/tool", row.name)
			want(t, calling(t, row.with, "install", "--immutable", "--in-place", d+"/tool"), "0", "is installed and not immutable: "+row.why)
			mustEcho(t, d+"/tool", row.name)
			want(t, calling(t, row.with, "status", d+"/shims/tool", d+"/tool"), "0", "protection: none\n")
			want(t, calling(t, row.with, "uninstall", "--in-place", d+"/tool"), "0", "restored")
		})
	}
	if os.Geteuid() != 0 {
		dir := t.TempDir()
		said := calling(t, nil, "install", "--immutable", "--dir", dir, "--real", "/bin/echo", "tool")
		want(t, said, "0", "is installed and not immutable: ")
	}
}

// TestImmutablePackage: a shim in the place of a package's file may be immutable where
// an upgrade goes to the program behind it, and dpkg then succeeds.
func TestImmutablePackage(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		missing(t, "dpkg-deb")
	}
	d := disk(t, "ext4")
	t.Setenv("DPKG_ADMINDIR", d+"/admin")
	tool, real := d+"/bin/tool", d+"/bin/tool"+record.InPlaceSuffix
	run := func(name string, args ...string) error {
		out, err := exec.Command(name, args...).CombinedOutput()
		t.Logf("%s %q: %v\n%s", name, args, err, out)
		return err
	}
	for _, dir := range []string{"/admin/updates", "/admin/info"} {
		if err := os.MkdirAll(d+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"status": "", "available": ""} {
		if err := os.WriteFile(d+"/admin/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	upgrade := func(version string) error {
		tree := t.TempDir()
		for path, text := range map[string]string{
			"/DEBIAN/control": "Package: shim-test\nVersion: " + version + "\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n",
			tool:              "#!/bin/sh\necho " + version + "\n",
		} {
			if err := os.MkdirAll(filepath.Dir(tree+path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(tree+path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := run("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, d+"/deb"); err != nil {
			t.Fatal(err)
		}
		return run("dpkg", "--install", d+"/deb")
	}
	is := func(version string) {
		t.Helper()
		if out, err := exec.Command(tool).Output(); err != nil || string(out) != version+"\n" {
			t.Errorf("%q, %v, want version %s", out, err, version)
		}
	}
	if err := upgrade("1"); err != nil {
		missing(t, "a working dpkg")
	}
	is("1")
	want(t, calling(t, nil, "install", "--in-place", "--immutable", tool), "1", "belongs to the package shim-test, whose upgrade fails")
	wantNames(t, d+"/bin", "tool")

	// What is refused would indeed fail.
	want(t, calling(t, nil, "install", "--in-place", tool), "0", "installed")
	if err := run("chattr", "+i", tool); err != nil {
		t.Fatal(err)
	}
	if err := upgrade("2"); err == nil {
		t.Error("dpkg went over an immutable file")
	}
	want(t, calling(t, nil, "uninstall", "--in-place", tool), "0", "restored")

	divert := []string{"--local", "--no-rename", "--divert", real}
	if err := run("dpkg-divert", append(divert, "--add", tool)...); err != nil {
		t.Fatal(err)
	}
	want(t, calling(t, nil, "install", "--in-place", "--immutable", tool), "0", "installed "+tool+" -> "+real+" (immutable)\n")
	wantFlags(t, true, tool)
	wantFlags(t, false, real)
	is("1")
	if err := upgrade("2"); err != nil {
		t.Error(err)
	}
	is("2")
	want(t, calling(t, nil, "status", tool), "0", "protection: immutable, in place")
	want(t, calling(t, nil, "uninstall", "--in-place", tool), "0", "restored")
	if err := run("dpkg-divert", append(divert, "--remove", tool)...); err != nil {
		t.Fatal(err)
	}
	is("2")
	want(t, calling(t, nil, "install", "--in-place", "--immutable", tool), "1", "belongs to the package")

	// A file that no package has needs none, and the file of another directory is another.
	if err := copyFile("/bin/echo", d+"/bin/[a-z]*", 0o755); err != nil {
		t.Fatal(err)
	}
	want(t, calling(t, nil, "install", "--in-place", "--immutable", d+"/bin/[a-z]*"), "0", "(both immutable)")
	want(t, calling(t, nil, "uninstall", "--in-place", d+"/bin/[a-z]*"), "0", "restored")
}
