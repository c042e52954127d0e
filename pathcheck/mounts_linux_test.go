package pathcheck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

func threadMounts(t *testing.T) pathcheck.Mounts {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		t.Error(err)
	}
	ms, err := pathcheck.ParseMounts(string(text))
	if err != nil {
		t.Error(err)
	}
	return ms
}

// checkOf compares Of with the mount ID that statx(2) gives.
func checkOf(t *testing.T, ms pathcheck.Mounts, paths ...string) {
	t.Helper()
	for _, path := range paths {
		var st unix.Statx_t
		if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_MNT_ID, &st); err != nil {
			t.Logf("%q cannot be asked about: %v", path, err)
			continue
		}
		// STATX_MNT_ID came with Linux 5.8, Landlock with 5.13.
		if m, ok := ms.Index().Of(path); !ok || m.ID != int(st.Mnt_id) {
			t.Errorf("Of(%q) = %d, %v; the kernel says %d", path, m.ID, ok, st.Mnt_id)
		}
	}
}

// missing skips a test for want of something; where tests must run, it fails.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func TestMountsOfHere(t *testing.T) {
	ms := threadMounts(t)
	paths := []string{"/", "/proc", "/proc/sys", "/dev/null", "/usr/bin"}
	for _, m := range ms {
		paths = append(paths, m.Point)
	}
	checkOf(t, ms, paths...)
}

// TestMountsReal makes the mounts that are hard to tell apart. They are made in
// a mount namespace of another goroutine's thread, so that nothing that cleans
// up after the test can follow them.
func TestMountsReal(t *testing.T) {
	if os.Geteuid() != 0 {
		missing(t, "mounting needs root")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secret := dir + "/srv/secret"
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := hardMounts(dir, secret); err != nil {
			t.Error(err)
			return
		}
		ms := threadMounts(t)
		checkOf(t, ms, "/", "/usr", dir, secret, dir+"/it self", dir+"/parent/secret", dir+"/deep", dir+"/stack",
			dir+"/covered", dir+"/covered/x", dir+"/all", dir+"/all/srv/secret")
		checkAliases(t, ms, secret, dir+"/it self", dir+"/parent/secret", dir+"/deep", dir+"/covered/x", dir+"/all/srv/secret")
	}()
	<-done
}

func hardMounts(dir, secret string) error {
	for _, d := range []string{"srv/secret/deep", "it self", "parent", "deep", "stack", "covered/x", "all"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make / private: %w", err)
	}
	for _, m := range []struct{ from, to string }{
		{secret, dir + "/it self"},
		{dir + "/srv", dir + "/parent"},
		{dir + "/srv/secret/deep", dir + "/deep"},
		{"", dir + "/stack"},
		{"", dir + "/stack"},
		{secret, dir + "/covered/x"},
		{"", dir + "/covered"},
		{secret, dir + "/covered/x"},
		{dir, dir + "/all"},
		{"/usr", "/"}, // no lookup enters it
	} {
		var err error
		if m.from == "" {
			err = unix.Mount("none", m.to, "tmpfs", 0, "size=64k")
		} else {
			if err := os.MkdirAll(m.to, 0o755); err != nil {
				return err
			}
			err = unix.Mount(m.from, m.to, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.from, m.to, err)
		}
	}
	return nil
}

func checkAliases(t *testing.T, ms pathcheck.Mounts, path string, want ...string) {
	t.Helper()
	aliases, known := ms.Index().Aliases(path)
	if !known {
		t.Error("aliases are not known")
	}
	var got []string
	for _, a := range aliases {
		got = append(got, a.Path)
		one, err1 := os.Stat(a.Path)
		two, err2 := os.Stat(a.Shows)
		if err1 != nil || err2 != nil || !os.SameFile(one, two) {
			t.Errorf("%q does not show %q: %v, %v", a.Path, a.Shows, err1, err2)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("aliases of %q (-want +got):\n%s", path, diff)
	}
}
