package general_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A message keeps to its line, whatever the names in it hold, and is one write.
func TestMessageIsOneLineAndOneWrite(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		odd := "a\nb\x1b[31m \"q\" \xff"
		dir := launch.Root.Mkdir(t, filepath.Join(p.dir, odd), 0o755)
		shim := launch.Copy(t, dir, odd)
		c := launch.Cmd{Path: shim, Args: []string{odd, p.marker}, User: u, Policy: `{"version":1,"` + `\n\u001b[0m` + `":1}`}
		r := p.wantNotStarted(t, c, 125, "SANDBOX_EXEC_SHIM_POLICY")
		for _, b := range []byte(strings.TrimSuffix(r.Stderr, "\n")) {
			if b < ' ' || b > 0x7e {
				t.Fatalf("byte %#x in %q", b, r.Stderr)
			}
		}
		c.Policy = p.policy(object{"program": dir + "/none\n\x1b[0m"})
		p.wantNotStarted(t, c, 127)

		for name, c := range map[string]launch.Cmd{
			"policy":   p.mark("{"),
			"path":     p.mark(p.policy(object{"exposed": []string{p.dir + "/x"}})),
			"notfound": {Path: shim, Args: []string{"x"}, User: u},
		} {
			t.Run(name, func(t *testing.T) {
				packets := packetPipe(t)
				c.Stderr = packets.w
				r := c.Run(t)
				if got := packets.read(t); len(got) != 1 || !oneMessage.MatchString(got[0]) {
					t.Errorf("%d writes: %q (%v)", len(got), got, r)
				}
			})
		}
		t.Run("hint", func(t *testing.T) {
			packets := packetPipe(t)
			shim := launch.Install(t, p.bin, "tool", launch.Record{Real: launch.WriteProgram(t, filepath.Join(p.dir, "nointerp"), []byte("#!"+launch.Nowhere+"\n"))})
			launch.Cmd{Path: shim, Args: []string{"x"}, User: u, Stderr: packets.w}.Run(t)
			got := packets.read(t)
			if len(got) != 2 || !strings.HasPrefix(got[1], "sandbox-exec-shim: hint: ") {
				t.Errorf("want a message and a hint, one write each: %q", got)
			}
		})
	})
}

type packets struct{ r, w *os.File }

// packetPipe is a pipe that keeps what one write wrote together (pipe(2),
// O_DIRECT).
func packetPipe(t *testing.T) packets {
	t.Helper()
	r, w, err := pipe2(directPipe)
	if err != nil {
		t.Fatal(err)
	}
	return packets{r, w}
}

// read closes the writing end and returns every write.
func (p packets) read(t *testing.T) []string {
	t.Helper()
	p.w.Close()
	defer p.r.Close()
	var out []string
	buf := make([]byte, 4096)
	for {
		n, err := p.r.Read(buf)
		if n == 0 {
			if err == nil || err.Error() != "EOF" {
				t.Fatal(err)
			}
			return out
		}
		out = append(out, string(buf[:n]))
	}
}
