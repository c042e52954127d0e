package target

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

// The contents of programs: a shim is an ELF file with the marker in its head, and
// a block for its record behind.
const (
	elf    = "\x7fELF and nothing else"
	marker = "\x11\xa9\x00\xb8\x27\xef\xd2\xcb\xcf\x7e\x61\x5a\x3d\xa8\xee\xf6"
)

func shimFile(t *testing.T, r record.Record) string {
	t.Helper()
	file := "\x7fELF" + strings.Repeat("\x00", 60) + marker + string(boot.RecordBlock())
	if r == (record.Record{}) {
		return file
	}
	out, err := record.Patch([]byte(file), r)
	errnotest.Must(t, err)
	return string(out)
}

// programs makes executable files and returns their directory.
func programs(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := child.Dir(t)
	for name, text := range files {
		name = dir + "/" + name
		errnotest.Must(t, os.MkdirAll(name[:strings.LastIndexByte(name, '/')], 0o755))
		text = strings.ReplaceAll(text, "%D", dir)
		errnotest.Must(t, os.WriteFile(name, []byte(text), 0o755))
	}
	return dir
}

// self is the shim whose file stands at path.
func self(t *testing.T, path string) Self {
	t.Helper()
	id, err := fileID(path)
	errnotest.Must(t, err)
	return Self{ID: id, known: true, readable: true, Path: path, Invoked: path}
}

// The real program is the next of its name behind the shim's own entry of PATH that
// is no shim, can be executed and does not lead back.
func TestSearchGoesOnBehindTheShim(t *testing.T) {
	shim := shimFile(t, record.Record{})
	dir := programs(t, map[string]string{
		"before/prog": elf, "me/prog": shim, "other/prog": shim + "another", "after/prog": elf, "last/prog": elf,
		"loop/prog": "#!%D/me/prog\n", "locked/prog": elf, "dir/prog/x": elf,
	})
	errnotest.Must(t, os.Chmod(dir+"/locked/prog", 0o644))
	errnotest.Must(t, os.Mkdir(dir+"/twice", 0o755))
	errnotest.Must(t, os.Link(dir+"/me/prog", dir+"/twice/prog"))
	me := self(t, dir+"/me/prog")
	for _, row := range []struct {
		path string
		want string
		err  error
	}{
		{"before:me:after:last", "after", nil},
		{"me:other:after", "after", nil},
		{"me:none:after", "after", nil},
		{"me:loop:after", "after", nil},
		{"me:locked:after", "after", nil},
		{"me:dir:after", "after", nil},
		{"me:after:twice:last", "after", nil},
		{"after:me", "", ErrNotFound},
		{"me:locked", "", errNotExecutable},
		{"me:other:loop", "", ErrNotFound},
		{"before:after", "before", nil},
		{"", "", ErrNotFound},
	} {
		var dirs []string
		for name := range strings.SplitSeq(row.path, ":") {
			dirs = append(dirs, dir+"/"+name)
		}
		f := follower{me: me, env: []string{"PATH=" + strings.Join(dirs, ":"), "PATH=" + dir + "/last"}}
		path, head, err := f.search("prog")
		want := ""
		if row.want != "" {
			want = dir + "/" + row.want + "/prog"
		}
		if path != want || !errors.Is(err, row.err) || (head == nil) != (want == "") {
			t.Errorf("%s: %q, %v, want %q, %v", row.path, path, err, want, row.err)
		}
	}
	// One that cannot be read may be a shim: it is only taken behind the last entry
	// of this one.
	errnotest.Must(t, os.Chmod(dir+"/after/prog", 0o711))
	child.Root(t)
	child.Thread(func() {
		// Another user without capabilities; raw, for this thread alone.
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, child.Nobody, child.Nobody, child.Nobody); errno != 0 {
			t.Error(errno)
			return
		}
		for path, want := range map[string]string{"%D/me:%D/after:%D/twice": "", "%D/me:%D/twice:%D/after": dir + "/after/prog"} {
			f := follower{me: me, env: []string{"PATH=" + strings.ReplaceAll(path, "%D", dir)}}
			if got, head, err := f.search("prog"); got != want || head != nil || (err == nil) != (want != "") {
				t.Errorf("unreadable, %s: %q, %v", path, got, err)
			}
		}
	})
}

func TestFind(t *testing.T) {
	dir := programs(t, map[string]string{
		"me/prog": shimFile(t, record.Record{}), "real": elf, "named": elf, "path/prog": elf, "stale": shimFile(t, record.Record{Real: "/x"}),
		"path/stale": elf, "place/tool.shim-real": elf, "back/tool": elf,
	})
	me := self(t, dir+"/me/prog")
	unreadable, lost, broken, nameless := me, me, me, me
	unreadable.readable, lost.known, lost.readable, broken.err, nameless.Invoked = false, false, false, unix.ENOMEM, ""
	env := []string{"PATH=" + dir + "/me:" + dir + "/path"}
	for _, row := range []struct {
		name    string
		me      Self
		r       record.Record
		program string
		path    string
		as      string
		err     error
	}{
		{"by the record", me, record.Record{Real: "/real"}, "/named", "/real", "real", nil},
		{"by the policy", me, record.Record{}, "/named", "/named", "named", nil},
		{"by PATH", me, record.Record{}, "", "/path/prog", "prog", nil},
		{"a stale record", me, record.Record{Real: "/stale"}, "/named", "/path/stale", "stale", nil},
		{"a record of what is gone", me, record.Record{Real: "/gone"}, "/named", "", "gone", ErrNotFound},
		{"in place", me, record.Record{Real: "/place/tool.shim-real", InPlace: true}, "", "/place/tool.shim-real", "prog", nil},
		{"restored in place", me, record.Record{Real: "/back/tool.shim-real", InPlace: true}, "", "/back/tool", "prog", nil},
		{"not restored", me, record.Record{Real: "/back/tool.shim-real"}, "", "", "tool.shim-real", ErrNotFound},
		{"unreadable, a record", unreadable, record.Record{Real: "/real"}, "", "/path/prog", "prog", nil},
		{"nowhere, a record", lost, record.Record{Real: "/real"}, "", "/real", "real", nil},
		{"nowhere, a record of a shim", lost, record.Record{Real: "/stale"}, "", "/path/prog", "prog", nil},
		{"the policy names this shim", me, record.Record{}, "/me/prog", "", "prog", ErrIsShim},
		{"nameless", nameless, record.Record{}, "", "", "", ErrNotFound},
		{"not looked at", broken, record.Record{}, "/named", "", "prog", unix.ENOMEM},
	} {
		if row.r.Real != "" && row.r.Real != "/x" {
			row.r.Real = dir + row.r.Real
		}
		if row.program != "" {
			row.program = dir + row.program
		}
		p, err := Find(Question{Self: row.me, Record: row.r, Program: row.program, Argv: []string{"prog"}, Env: env})
		if row.path != "" {
			row.path = dir + row.path
		}
		if !errors.Is(err, row.err) || err == nil && p.Path != row.path || p.Name != row.as {
			t.Errorf("%s: %+v, %v, want %s", row.name, p, err, row.path)
		}
		if err == nil && p.head == nil {
			t.Errorf("%s: its head was not kept", row.name)
		}
	}
}

// The shim's own file is found by /proc and, where that is missing, by the name that
// execve was given; argv[0] is believed only for this very file.
func TestFindSelf(t *testing.T) {
	exe, err := os.Executable()
	errnotest.Must(t, err)
	dir := programs(t, map[string]string{"shim": shimFile(t, record.Record{}), "elf": elf})
	errnotest.Must(t, os.Symlink(exe, dir+"/alias"))
	for _, row := range []struct {
		execFn string
		argv   []string
		want   string
	}{
		{dir + "/alias", []string{"x"}, dir + "/alias"},
		{dir + "/elf", []string{dir + "/alias"}, dir + "/alias"},
		{"/dev/fd/3", []string{dir + "/alias"}, dir + "/alias"},
		{dir + "/elf", []string{dir + "/elf"}, exe},
		{"", nil, exe},
	} {
		me := FindSelf(row.execFn, row.argv)
		if me.Invoked != row.want || me.Path != exe || !me.known || !me.readable || me.err != nil {
			t.Errorf("%q, %q: %+v, want %s", row.execFn, row.argv, me, row.want)
		}
	}
	child.Root(t)
	child.Thread(func() { // without /proc
		if err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Chroot(dir), unix.Chdir("/")); err != nil {
			t.Error(err)
			return
		}
		for _, row := range []struct {
			execFn string
			argv   []string
			known  bool
			name   string
		}{
			{"/shim", []string{"x"}, true, "shim"},
			{"", []string{"./shim"}, true, "shim"},
			{"/elf", []string{"/shim"}, true, "shim"},
			{"/elf", []string{"shim"}, false, ""},
			{"/gone", nil, false, ""},
		} {
			if me := FindSelf(row.execFn, row.argv); me.known != row.known || me.Name() != row.name {
				t.Errorf("without /proc: %q, %q: %+v", row.execFn, row.argv, me)
			}
		}
	})
}

// A shim is known by its first page, also when there is no descriptor left, and what
// is no file is not waited for.
func TestShimFilesAreKnown(t *testing.T) {
	dir := programs(t, map[string]string{"shim": shimFile(t, record.Record{}), "elf": elf, "script": "#!/bin/sh\n"})
	errnotest.Must(t, unix.Mkfifo(dir+"/fifo", 0o755))
	for name, want := range map[string]answer{"shim": yes, "elf": no, "script": no, "fifo": unknown, "gone": unknown} {
		if got := isShimFile(dir + "/" + name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if !isForeignELF(dir+"/elf") || isForeignELF(dir+"/shim") || isForeignELF(dir+"/script") || isForeignELF(dir+"/gone") {
		t.Error("a foreign ELF file")
	}
	errnotest.Answering(t, errnotest.Openat, unix.EMFILE, func() {
		if got := isShimFile(dir + "/shim"); got != yes {
			t.Errorf("no descriptors left: %v", got)
		}
	})
	if _, err := fileID(dir); err != errNotExecutable {
		t.Errorf("a directory: %v", err)
	}
	if _, _, err := openRegular(dir + "/fifo"); err != unix.EACCES {
		t.Errorf("a FIFO: %v", err)
	}
}

// What execve needs of a program is listed to its last loader.
func TestNeeds(t *testing.T) {
	dir := programs(t, map[string]string{"script": "#!%D/inner -x\n", "inner": "#! /bin/true arg\n", "text": "no line\n", "self": "#!%D/self\n"})
	loader := ""
	for _, n := range At("/bin/true", "true").Needs() {
		if n.Role == "the program's loader" {
			loader = n.Path
		}
	}
	if !strings.HasPrefix(loader, "/lib") {
		t.Fatalf("the loader of /bin/true is %q", loader)
	}
	interpreter := func(path string) plan.Need { return plan.Need{Role: "the program's interpreter", Path: path} }
	for name, want := range map[string][]plan.Need{
		"script": {{Role: "the program", Path: dir + "/script"}, interpreter(dir + "/inner"), interpreter("/bin/true"), {Role: "the program's loader", Path: loader}},
		"text":   {{Role: "the program", Path: dir + "/text"}},
		"gone":   {{Role: "the program", Path: dir + "/gone"}},
	} {
		if diff := cmp.Diff(want, At(dir+"/"+name, name).Needs()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if n := len(At(dir+"/self", "self").Needs()); n != maxInterpreters+1 {
		t.Errorf("a script of itself needs %d", n)
	}
}
