package seccomp

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestProve loads filters on threads that end with them. A filter that refuses less
// than it should, and one that is not there, are found.
func TestProve(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	if Filtered() {
		t.Skip("the tests run behind a filter, which may kill for what is tried")
	}
	all := Config{Sockets: LocalSockets, NoUnixSockets: true, NoTerminalInput: true, NoKeyrings: true, NoFileIoctls: true, NoLimitsOfOthers: true, Mark: 5}
	other, less := all, all
	other.Mark = 6
	less.NoFileIoctls = false
	for _, row := range []struct {
		name          string
		loaded, asked Config
		behind        bool
		want          string // in the error
	}{
		{"in force", all, all, false, ""},
		{"in force, behind another", all, all, true, ""},
		{"another launch's", all, other, false, errNoAnswer.Error()},
		{"another launch's, behind it", all, other, true, errNoAnswer.Error()},
		{"one that refuses less", less, all, false, "a snapshot"},
		{"none", Config{}, all, false, errNoAnswer.Error()},
	} {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its filter
			err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
			if err == nil && !row.loaded.Empty() {
				err = Load(row.loaded)
			}
			if filtered := Filtered(); err == nil && filtered == row.loaded.Empty() {
				err = errors.New("Filtered says the opposite")
			}
			if err == nil {
				err = Prove(row.asked, row.behind)
			}
			done <- err
		}()
		err := <-done
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", row.name, err, row.want)
		}
	}
}
