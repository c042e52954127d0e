package place

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// TestPut: a name is given only while it has what was seen there.
func TestPut(t *testing.T) {
	for _, row := range []struct {
		name        string
		seen, there string // contents, "" for no file
		changed     bool
	}{
		{"nothing", "", "", false},
		{"the file that was seen", "old", "old", false},
		{"a new file", "", "new", true},
		{"another file", "old", "new", true},
		{"the file is gone", "old", "", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			d, name := open(t, dir), dir+"/name"
			if row.seen != "" {
				write(t, name, row.seen, 0o600)
			}
			was, err := d.look("name")
			if err != nil {
				t.Fatal(err)
			}
			if row.changed {
				// The old inode stays in use, or the new file could get its number.
				_ = os.Rename(name, dir+"/moved")
				if row.there != "" {
					write(t, name, row.there, 0o600)
				}
			}
			if err := d.writeTemp("name", []byte("shim"), fileMode{uint32(os.Geteuid()), uint32(os.Getegid()), 0o751, nil}); err != nil {
				t.Fatal(err)
			}
			err = d.put(shims.TempName("name"), "name", was)
			if (err != nil) != row.changed || row.changed && !strings.Contains(err.Error(), "by somebody else meanwhile") {
				t.Errorf("%v", err)
			}
			want := "shim"
			if row.changed {
				want = row.there
			}
			if got, _ := os.ReadFile(name); string(got) != want {
				t.Errorf("the name has %q, want %q", got, want)
			}
			if st, err := os.Stat(name); !row.changed && (err != nil || st.Mode().Perm() != 0o751) {
				t.Errorf("%v, %v", st.Mode(), err)
			}
		})
	}
}

// TestWriteTemp: what a crash left under the temporary name is replaced, and a
// link there is not followed.
func TestWriteTemp(t *testing.T) {
	dir := t.TempDir()
	d, victim := open(t, dir), write(t, dir+"/victim", "keep", 0o600)
	if err := os.Symlink(victim, dir+"/"+shims.TempName("x")); err != nil {
		t.Fatal(err)
	}
	mode := fileMode{uint32(os.Geteuid()), uint32(os.Getegid()), 0o700, nil}
	if err := d.writeTemp("x", []byte("new"), mode); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(victim); string(got) != "keep" {
		t.Errorf("the link was followed: %q", got)
	}
	if st, err := os.Lstat(dir + "/" + shims.TempName("x")); err != nil || !st.Mode().IsRegular() || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st, err)
	}
	if os.Geteuid() == 0 {
		mode.uid, mode.gid = 65534, 65534
		if err := d.writeTemp("x", nil, mode); err != nil {
			t.Fatal(err)
		}
		if st, _, err := d.lstat(shims.TempName("x")); err != nil || st.Uid != 65534 || st.Gid != 65534 {
			t.Errorf("%+v, %v", st, err)
		}
	}
}

// TestLock: a second installer waits until the first one has closed the directory.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	first, second := open(t, dir), open(t, dir)
	if err := first.prepare(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- second.prepare() }()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := unix.Flock(first.fd, unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSame: an install is done again unless content, owner and mode are the same.
func TestSame(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(launch.Install(t, dir, "name", launch.Record{Real: "/bin/true"}))
	if err != nil {
		t.Fatal(err)
	}
	s, err := open(t, dir).inspect("name")
	if err != nil {
		t.Fatal(err)
	}
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	for _, row := range []struct {
		name string
		data []byte
		mode fileMode
		want bool
	}{
		{"same", data, fileMode{uid, gid, 0o755, nil}, true},
		{"content", append(slices.Clone(data), 0), fileMode{uid, gid, 0o755, nil}, false},
		{"owner", data, fileMode{uid + 1, gid, 0o755, nil}, false},
		{"group", data, fileMode{uid, gid + 1, 0o755, nil}, false},
		{"mode", data, fileMode{uid, gid, 0o711, nil}, false},
		{"list", data, fileMode{uid, gid, 0o755, []byte{2}}, false},
	} {
		if got, err := s.same(row.data, row.mode); err != nil || got != row.want {
			t.Errorf("%s: %v, %v", row.name, got, err)
		}
	}
}

// TestReadable: whoever may start the shim may read it, by mode and by list.
func TestReadable(t *testing.T) {
	for perm, want := range map[uint32]uint32{0o711: 0o755, 0o750: 0o750, 0o100: 0o500, 0o010: 0o050, 0o001: 0o005, 0o600: 0o600} {
		if got := readableIfExecutable(perm); got != want {
			t.Errorf("%o: %o, want %o", perm, got, want)
		}
	}
	entry := func(perm byte) []byte { return []byte{1, 0, perm, 0, 9, 9, 9, 9} }
	list := slices.Concat([]byte{2, 0, 0, 0}, entry(1), entry(2), entry(0))
	if got, want := readableACL(list), slices.Concat([]byte{2, 0, 0, 0}, entry(5), entry(2), entry(0)); !bytes.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
	if readableACL(nil) != nil {
		t.Error("no list became one")
	}
}
