package target

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// A #! line is split as the kernel does: one program, and all the rest is one
// argument.
func TestInterpreter(t *testing.T) {
	long := "#!/" + strings.Repeat("x", 300)
	for _, row := range []struct {
		head, path, arg string
		ok              bool
	}{
		{"#!/bin/sh\n", "/bin/sh", "", true},
		{"#! \t/bin/sh \t -e  -x \nmore", "/bin/sh", "-e  -x", true},
		{"#!/bin/sh", "/bin/sh", "", true},
		{"#!/bin/sh\x00-e\n", "/bin/sh", "", true},
		{"#!\n/bin/sh", "", "", false},
		{"#/bin/sh\n", "", "", false},
		{" #!/bin/sh\n", "", "", false},
		{"", "", "", false},
		{long + "\n", long[2:maxLine], "", true},
	} {
		if path, arg, ok := interpreter([]byte(row.head)); path != row.path || arg != row.arg || ok != row.ok {
			t.Errorf("%.20q: %.20q, %q, %v", row.head, path, arg, ok)
		}
	}
}

// Whatever could come back to this shim without end is not started.
func TestLeadsBack(t *testing.T) {
	shim := shimFile(t, record.Record{})
	files := map[string]string{
		"bin/me": shim, "other": shimFile(t, record.Record{Real: "/placeholder"}), "elf": elf, "free": "#!/bin/true\n",
		"straight": "#!%D/bin/me\n", "twice": "#!%D/straight\n", "byenv": "#!/usr/bin/env me\n", "byenvpath": "#!/usr/bin/env -S PATH=%D/bin me x\n",
		"envfree": "#!/usr/bin/env true\n", "envelse": "#!/usr/bin/env -S PATH=/bin me\n", "round": "#!%D/round\n", "text": "no line\n",
		"shims/two": shim + "another", "scripts/two": "#!/usr/bin/env -S PATH=/bin true\n", "later/two": "#!/usr/bin/env me\n", "byrest": "#!%D/shims/two\n",
		"gone": "#!%D/nothing\n", "byother": "#!%D/other\n", "bynamed": "#!%D/shims/me\n", "shims/me": shim + "another", "scripts/me": "#!%D/bin/me\n",
	}
	// A row of scripts that is longer than the kernel follows, and one than this does.
	for i := range 2 * maxSteps {
		files[fmt.Sprintf("row/%d", i)] = fmt.Sprintf("#!%%D/row/%d\n", i+1)
	}
	dir := programs(t, files)
	straight := dir + "/straight"
	patched, err := record.Patch([]byte(shim), record.Record{Real: straight})
	errnotest.Must(t, err)
	errnotest.Must(t, os.WriteFile(dir+"/other", patched, 0o755))
	me := self(t, dir+"/bin/me")
	for name, want := range map[string]bool{
		"elf": false, "free": false, "straight": true, "twice": true, "byenv": true, "byenvpath": true, "envfree": false, "envelse": false,
		"round": false, "text": false, "gone": false, "byother": true, "bynamed": true, "byrest": true, "row/0": true, "row/150": false,
	} {
		f := follower{me: me, env: []string{"PATH=" + dir + "/bin:" + dir + "/scripts:" + dir + "/later:/usr/bin:/bin"}}
		path := dir + "/" + name
		head, err := readHead(path)
		errnotest.Must(t, err)
		if got := f.leadsBack(path, head); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	// The path of a script that has come back before stands in argv each time.
	for n, want := range map[int]bool{maxReturns - 1: false, maxReturns: true} {
		args := append([]string{"me"}, strings.Split(strings.Repeat(dir+"/free ", n), " ")...)
		if got := (follower{me: me, argv: args}).leadsBack(dir+"/free", []byte("#!/bin/true\n")); got != want {
			t.Errorf("%d times in argv: %v", n, got)
		}
		if got := (follower{me: me, argv: args}).leadsBack(dir+"/free", []byte(elf)); got {
			t.Errorf("%d times in argv, and no script", n)
		}
	}
}

func TestRecordedBy(t *testing.T) {
	r := record.Record{Real: "/bin/true", PolicyEnv: "P"}
	dir := programs(t, map[string]string{"shim": shimFile(t, r), "plain": shimFile(t, record.Record{}), "elf": elf})
	errnotest.Must(t, os.WriteFile(dir+"/large", []byte(shimFile(t, r)), 0o755))
	errnotest.Must(t, os.Truncate(dir+"/large", maxShim+1))
	for name, want := range map[string]bool{"shim": true, "plain": false, "elf": false, "large": false, "gone": false} {
		got, ok := recordedBy(dir + "/" + name)
		if ok != want || ok && got != r {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

// What execvp(3) passes over on PATH is passed over.
func TestStartable(t *testing.T) {
	dir := programs(t, map[string]string{"elf": elf, "script": "#!%D/elf\n", "broken": "#!%D/nothing\n", "locked": elf, "dir/x": elf, "round": "#!%D/round\n"})
	errnotest.Must(t, os.Chmod(dir+"/locked", 0o644))
	for name, want := range map[string]bool{"elf": true, "script": true, "broken": false, "locked": false, "dir": false, "gone": false, "round": true} {
		if got := startable(dir + "/" + name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// The loader stands in the file, in either class and byte order, and nothing outside
// of the page is taken for one.
func TestLoaderOfAnELFFile(t *testing.T) {
	build := func(class64, big bool, change func(b []byte, order binary.ByteOrder)) []byte {
		b := make([]byte, 256)
		copy(b, "\x7fELF")
		var order binary.ByteOrder = binary.LittleEndian
		b[4], b[5] = 1, 1
		if big {
			order, b[5] = binary.BigEndian, 2
		}
		copy(b[200:], "/lib/ld\x00")
		if class64 {
			b[4] = 2
			order.PutUint64(b[32:], 64)
			order.PutUint16(b[54:], 56)
			order.PutUint16(b[56:], 2)
			order.PutUint32(b[64+56:], 3)
			order.PutUint64(b[64+56+8:], 200)
			order.PutUint64(b[64+56+32:], 8)
		} else {
			order.PutUint32(b[28:], 64)
			order.PutUint16(b[42:], 32)
			order.PutUint16(b[44:], 2)
			order.PutUint32(b[64+32:], 3)
			order.PutUint32(b[64+32+4:], 200)
			order.PutUint32(b[64+32+16:], 8)
		}
		if change != nil {
			change(b, order)
		}
		return b
	}
	none := func(b []byte, _ binary.ByteOrder) {}
	for _, row := range []struct {
		name   string
		change func(b []byte, order binary.ByteOrder)
		want   string
	}{
		{"as it is", none, "/lib/ld"},
		{"no ELF file", func(b []byte, _ binary.ByteOrder) { b[0] = 0 }, ""},
		{"headers behind the page", func(b []byte, o binary.ByteOrder) { o.PutUint64(b[32:], 300) }, ""},
		{"headers at the end of the numbers", func(b []byte, o binary.ByteOrder) { o.PutUint64(b[32:], ^uint64(0)-8) }, ""},
		{"name behind the page", func(b []byte, o binary.ByteOrder) { o.PutUint64(b[64+56+8:], 250) }, ""},
		{"name of all ones", func(b []byte, o binary.ByteOrder) { o.PutUint64(b[64+56+32:], ^uint64(0)) }, ""},
		{"no name", func(b []byte, o binary.ByteOrder) { o.PutUint64(b[64+56+32:], 1) }, ""},
		{"headers without size", func(b []byte, o binary.ByteOrder) { o.PutUint16(b[54:], 0) }, ""},
	} {
		if got := elfInterpreter(build(true, false, row.change)); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	for _, class64 := range []bool{true, false} {
		for _, big := range []bool{true, false} {
			if got := elfInterpreter(build(class64, big, nil)); got != "/lib/ld" {
				t.Errorf("64 bits %v, big-endian %v: %q", class64, big, got)
			}
		}
	}
	if got := elfInterpreter([]byte("\x7fELF")); got != "" {
		t.Errorf("four bytes: %q", got)
	}
}

// The first of two variables counts, as for getenv(3), and an empty entry of PATH is
// the current directory.
func TestPath(t *testing.T) {
	for _, row := range []struct {
		env  []string
		want string
	}{
		{nil, "/bin /usr/bin"},
		{[]string{"PATH="}, "."},
		{[]string{"PATHS=/no", "PATH=/a::/b:", "PATH=/c"}, "/a . /b ."},
	} {
		if got := strings.Join(PathDirs(row.env), " "); got != row.want {
			t.Errorf("%q: %q, want %q", row.env, got, row.want)
		}
	}
	if _, ok := Getenv([]string{"A"}, "A"); ok {
		t.Error("a variable without a value")
	}
}
