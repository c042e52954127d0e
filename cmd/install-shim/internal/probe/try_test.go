package probe

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseExpectation(t *testing.T) {
	for _, row := range []struct {
		text string
		want expectation
	}{
		{"a=read:/x:denied", expectation{"a", "read", "/x", "denied"}},
		{"a b=list:/x:y:allowed", expectation{"a b", "list", "/x:y", "allowed"}},
		{"run:x=write:/a=b:denied", expectation{"run:x", "write", "/a=b", "denied"}},
		{"", expectation{}},
		{"a", expectation{}},
		{"=read:/x:denied", expectation{}},
		{"a=read:/x", expectation{}},
		{"a=read:x:denied", expectation{}},
		{"a=execute:/x:denied", expectation{}},
		{"a=read:/x:no", expectation{}},
	} {
		got, err := parseExpectation(row.text)
		if (err != nil) != (row.want == expectation{}) || err == nil && got != row.want {
			t.Errorf("%q: %+v, %v", row.text, got, err)
		}
	}
}

// TestWouldExecute: both ways give execve's answer, and nothing runs.
func TestWouldExecute(t *testing.T) {
	dir := t.TempDir()
	script, plain, ran := filepath.Join(dir, "script"), filepath.Join(dir, "plain"), filepath.Join(dir, "ran")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho >"+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func(string) error{"as it is": wouldExecute, "traced": tracedExecute} {
		for path, want := range map[string]error{
			script: nil, "/bin/true": nil, plain: unix.EACCES, dir: unix.EACCES, dir + "/nothing": unix.ENOENT, plain + "/x": unix.ENOTDIR,
		} {
			if err := try(path); !errors.Is(err, want) {
				t.Errorf("%s: %s: %v, want %v", name, path, err, want)
			}
		}
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the script ran: %v", err)
	}
}

// TestTries: each operation gives the kernel's answer and leaves what was there.
func TestTries(t *testing.T) {
	dir := t.TempDir()
	file, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "fifo")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		try  try
		want string
	}{
		{try{Op: opRead, Path: file}, ""},
		{try{Op: opRead, Path: file + "x"}, "ENOENT"},
		{try{Op: opRead, Path: dir}, "EISDIR"},
		{try{Op: opList, Path: dir}, ""},
		{try{Op: opList, Path: file}, "ENOTDIR"},
		{try{Op: opWrite, Path: file}, ""},
		{try{Op: opWrite, Path: file + "x"}, "ENOENT"},
		{try{Op: opWrite, Path: fifo}, "ENXIO"}, // and does not block
		{try{Op: opCreate, Path: file}, "EEXIST"},
		{try{Op: opCreate, Path: dir + "/new"}, ""},
		{try{Op: opUse, Path: dir}, ""},
		{try{Op: opUse, Path: dir + "/no"}, "ENOENT"},
		{try{Op: opStat, Path: file}, ""},
		{try{Op: opRead, FD: int(f.Fd()), Dev: uint64(st.Dev), Ino: st.Ino}, ""},
		{try{Op: opRead, FD: int(f.Fd()), Dev: uint64(st.Dev), Ino: st.Ino + 1}, "EBADF"},
		{try{Op: opList, FD: int(f.Fd()), Dev: uint64(st.Dev), Ino: st.Ino}, "ENOTDIR"},
	} {
		if got := row.try.make(); got.Errno != row.want || got.Detail != "" {
			t.Errorf("%+v: %+v, want %q", row.try, got, row.want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "text" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if got := (try{Op: opAppend, Path: file}).make(); !got.allowed() {
		t.Errorf("append: %+v", got)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "textprobe\n" {
		t.Errorf("after append the file has %q, %v", text, err)
	}
}

// TestDotDot: the paths lead to where the plain one leads.
func TestDotDot(t *testing.T) {
	for path, want := range map[string]string{"/a/b/c": "/a/b/../b/c", "/a/b": "/a/../a/b", "/a": "/..///a"} {
		if got := dotDot(path); filepath.Clean(got) != path || len(got) != len(want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestJudge: what is expected to be denied must have been denied.
func TestJudge(t *testing.T) {
	for _, row := range []struct {
		expected, outside string
		got               outcome
		result            string
		ok                bool
	}{
		{denied, allowed, outcome{Errno: "EACCES"}, denied, true},
		{denied, allowed, outcome{}, allowed, false},
		{denied, allowed, outcome{Errno: "ENOENT"}, denied, true}, // hidden from sight
		{denied, "absent", outcome{Errno: "ENOENT"}, "absent", false},
		{denied, "absent", outcome{Errno: "ENOTDIR"}, "absent", false},
		{denied, denied, outcome{Errno: "EACCES"}, denied, true},
		{allowed, allowed, outcome{}, allowed, true},
		{allowed, allowed, outcome{Errno: "EACCES"}, denied, false},
		{allowed, "absent", outcome{Errno: "ENOENT"}, "absent", false},
		{"", allowed, outcome{}, allowed, true},
		{allowed, allowed, outcome{Detail: "odd"}, denied, false},
	} {
		c := &check{Expected: row.expected, Outside: row.outside}
		(&set{checks: []*check{c}}).judge([]outcome{row.got})
		if c.Result != row.result || c.OK != row.ok {
			t.Errorf("%+v: %s, %v", row, c.Result, c.OK)
		}
	}
}
