package names

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare"
)

// A stage has a shim in front, a script of the same name as its recorded program,
// and a program of that name in bin, which is on PATH behind the shim.
type stage struct {
	front, own, bin string
	stderr          *os.File
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir := launch.Dir(t)
	sub := func(name string) string { return launch.Root.Mkdir(t, filepath.Join(dir, name), 0o755) }
	s := &stage{front: sub("front"), own: sub("own"), bin: sub("bin")}
	launch.Install(t, s.front, toolName, launch.Record{Real: filepath.Join(s.own, toolName)})
	bare.Real.Install(t, s.bin, toolName)
	var err error
	if s.stderr, err = os.CreateTemp(t.TempDir(), "stderr"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stderr.Close() })
	return s
}

// fill puts the directories of the stage into a text.
func (s *stage) fill(text string) string {
	return strings.NewReplacer("%front", s.front, "%own", s.own, "%bin", s.bin).Replace(text)
}

// start starts a program of the stage, wants it to end as the real one does, and
// returns how many execs that took.
func (s *stage) start(t *testing.T, u launch.User, path string, env ...string) int {
	t.Helper()
	if err := s.stderr.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.stderr.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	c := traced{
		path: path, argv: []string{toolName, "a", "b"}, dir: "/", user: u, stderr: s.stderr,
		env: append([]string{s.fill("PATH=%front:%bin:/usr/bin:/bin")}, env...),
	}
	execs, status := c.run(t)
	said, err := os.ReadFile(s.stderr.Name())
	if err != nil {
		t.Fatal(err)
	}
	if !status.Exited() || status.ExitStatus() != bare.RealCode || len(said) > 0 {
		t.Errorf("as %s: status %#x after %d execs, said %q", u.Name, int(status), execs, said)
	}
	return execs
}

// Whether a script comes back to the shim is told from its #! line, also through
// env(1) with variables and -S: then the shim does not start it, and no argument arrives twice.
func TestScriptsThatComeBackAreNotStarted(t *testing.T) {
	s := newStage(t)
	script := filepath.Join(s.own, toolName)
	for _, row := range []struct {
		line string
		// through is how many execs lie between the script and the program, if
		// it does not come back.
		through int
	}{
		{line: "%front/tool"},
		{line: "%front/tool x"},
		{line: "/usr/bin/env tool"},
		{line: "/usr/bin/env -Stool"},
		{line: "/usr/bin/env -S tool"},
		{line: "/usr/bin/env --split-string=tool"},
		{line: "/usr/bin/env -S VAR=1 OTHER=2 tool -x"},
		{line: "/usr/bin/env -S env env tool"},
		{line: "/usr/bin/env -S PATH=%front /usr/bin/env tool"},

		{line: "/usr/bin/env -S PATH=%bin tool", through: 1},
		{line: "/usr/bin/env -S PATH=%bin /usr/bin/env tool", through: 2},
		{line: "/usr/bin/env -S -i %bin/tool", through: 1},
		{line: "/usr/bin/env -iS PATH=%bin tool", through: 1},
		{line: "/usr/bin/env -S -C %bin ./tool", through: 1},
		{line: "/usr/bin/env -S %bin/tool %front/tool", through: 1},
		{line: "%bin/tool %front/tool"},
	} {
		t.Run(row.line, func(t *testing.T) {
			launch.WriteProgram(t, script, []byte(s.fill("#!"+row.line)+"\n"))
			launch.EachUser(t, func(t *testing.T, u launch.User) {
				env := []string{"NAME=tool", "FRONT=" + s.front, "VAR=x", "OTHER=y"}
				want := 2 + row.through
				if execs := s.start(t, u, filepath.Join(s.front, toolName), env...); execs != want {
					t.Errorf("%d execs from the shim, want %d", execs, want)
				}
			})
		})
	}
}

// What a program other than env does with its arguments cannot be known, and env's
// rarer options are not followed, so a script that comes back through one of them
// does it, a limited number of times.
func TestScriptThatComesBackUnseenEnds(t *testing.T) {
	launch.Need(t, launch.Program("nice"))
	s := newStage(t)
	for _, row := range []struct {
		line string
		// each is how many execs lead from the shim back to it.
		each int
	}{
		{"/usr/bin/env -S nice -n 0 tool", 3},
		{"/usr/bin/env --split=tool", 2},
		{"/usr/bin/env -iSPATH=%front:%bin tool", 2},
		{"/usr/bin/env -S - PATH=%front:%bin tool", 2},
		{"/usr/bin/env -S -u VAR --unset=OTHER tool", 2},
		{"/usr/bin/env -S -C %front ./tool", 2},
		{"/usr/bin/env -S env -S 'VAR=1 env tool'", 4},
		{"/usr/bin/env -S 't'\"oo\"l", 2},
		{"/usr/bin/env -S ${NAME}", 2},
	} {
		t.Run(row.line, func(t *testing.T) {
			launch.WriteProgram(t, filepath.Join(s.own, toolName), []byte(s.fill("#!"+row.line)+"\n"))
			launch.EachUser(t, func(t *testing.T, u launch.User) {
				// Before: the shim; at the end the program.
				const returns = 8
				if execs := s.start(t, u, filepath.Join(s.front, toolName), "NAME=tool", "VAR=x"); execs != 1+row.each*returns+1 {
					t.Errorf("%d execs", execs)
				}
			})
		})
	}
}

// A file that says in its first page that it is a shim is not read when it is too
// large for one. It is a program of which env(1) finds that its loader is missing,
// and passes it by.
func TestHugeFileIsNoShim(t *testing.T) {
	s := newStage(t)
	data, err := os.ReadFile(launch.Shim(t))
	if err != nil {
		t.Fatal(err)
	}
	fake := filepath.Join(s.front, "node")
	launch.WriteProgram(t, fake, withoutLoader(t, data[:4096]))
	if err := os.Truncate(fake, 40<<30); err != nil {
		t.Skipf("no file of 40 GiB here: %v", err)
	}
	bare.Real.Install(t, s.bin, "node")
	launch.WriteProgram(t, filepath.Join(s.own, toolName), []byte("#!/usr/bin/env node\n"))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		if execs := s.start(t, u, filepath.Join(s.front, toolName)); execs != 3 {
			t.Errorf("%d execs", execs)
		}
	})
}

// withoutLoader changes the first note of an ELF file into a request for a loader
// that does not exist.
func withoutLoader(t *testing.T, head []byte) []byte {
	t.Helper()
	const (
		programHeaders, headerSize, headers = 32, 54, 56 // elf(5), Elf64_Ehdr
		typeNote, typeLoader                = 4, 3
		offset, size                        = 8, 32 // Elf64_Phdr
	)
	head = bytes.Clone(head)
	le := binary.LittleEndian
	at := int(le.Uint64(head[programHeaders:]))
	for range le.Uint16(head[headers:]) {
		h := head[at:]
		at += int(le.Uint16(head[headerSize:]))
		if le.Uint32(h) != typeNote {
			continue
		}
		const loader = launch.Nowhere + "\x00"
		if n := le.Uint64(h[size:]); n < uint64(len(loader)) {
			t.Fatalf("a note of %d bytes", n)
		}
		le.PutUint32(h, typeLoader)
		copy(head[le.Uint64(h[offset:]):], loader)
		le.PutUint64(h[size:], uint64(len(loader)))
		return head
	}
	t.Fatal("no note")
	return nil
}
