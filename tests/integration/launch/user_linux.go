package launch

import (
	"os"
	"strconv"
	"syscall"
	"testing"
)

// scratch is where test directories are made. It is no temp directory: hiding
// something freezes what stands above, and no link in a temp directory is followed.
var scratch = func() string {
	if os.Geteuid() == 0 {
		return "/var/lib"
	}
	if home, err := os.UserHomeDir(); err == nil {
		return home
	}
	return "/var/tmp"
}()

// A User is who starts a launch. The zero value is root when the tests run as
// root; use [Current] for whoever runs them.
type User struct {
	Name     string
	UID, GID int
}

// Root and Nobody are the two users that every test is run as.
var (
	Root   = User{Name: "root"}
	Nobody = User{Name: "uid65534", UID: 65534, GID: 65534}
)

// Current is the user who runs the tests.
func Current() User {
	if os.Geteuid() == 0 {
		return Root
	}
	return User{Name: "uid" + strconv.Itoa(os.Getuid()), UID: os.Getuid(), GID: os.Getgid()}
}

// EachUser runs f as a subtest for root and for uid 65534. Without root it can
// only run for the current user.
func EachUser(t *testing.T, f func(t *testing.T, u User)) {
	t.Helper()
	if os.Geteuid() != 0 {
		u := Current()
		if os.Getenv("CI") != "" {
			t.Fatal("these tests need root to start launches as root and as uid 65534")
		}
		t.Logf("not root: only as %s", u.Name)
		t.Run(u.Name, func(t *testing.T) { f(t, u) })
		return
	}
	for _, u := range []User{Root, Nobody} {
		t.Run(u.Name, func(t *testing.T) { f(t, u) })
	}
}

// credential is nil for the user who runs the tests.
func (u User) credential() *syscall.Credential {
	if u.UID == os.Geteuid() {
		return nil
	}
	return &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
}

// Dir makes a directory of the user's own, mode 0755, which is removed at the
// end of the test.
func (u User) Dir(tb testing.TB) string {
	tb.Helper()
	dir := Dir(tb)
	u.Own(tb, dir)
	return dir
}

// Own gives paths to the user. Without root there is but one user, who has
// them already.
func (u User) Own(tb testing.TB, paths ...string) {
	tb.Helper()
	if os.Geteuid() != 0 {
		return
	}
	for _, path := range paths {
		if err := os.Lchown(path, u.UID, u.GID); err != nil {
			tb.Fatal(err)
		}
	}
}

// Mkdir makes a directory of the user's own and returns its path.
func (u User) Mkdir(tb testing.TB, path string, mode os.FileMode) string {
	tb.Helper()
	if err := os.Mkdir(path, mode); err != nil {
		tb.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		tb.Fatal(err)
	}
	u.Own(tb, path)
	return path
}

// Write makes a file of the user's own and returns its path.
func (u User) Write(tb testing.TB, path, text string, mode os.FileMode) string {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		tb.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		tb.Fatal(err)
	}
	u.Own(tb, path)
	return path
}

// Dir makes a directory under /var/tmp that everybody can read, which is
// removed at the end of the test.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp(scratch, "shim-test-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("remove the test's directory: %v", err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	return dir
}
