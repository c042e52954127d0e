package general_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestCase03_MalformedPolicyStops(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.wantNotStarted(t, p.mark("{"), 125, "SANDBOX_EXEC_SHIM_POLICY")
		p.wantStarted(t, p.mark(`{"version":1}`))
	})
}

// canary stands in the values of bad policies and must not be repeated.
const canary = "c4n4ry"

func TestFaultyPolicyStopsAndIsNotRepeated(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		h := fmt.Sprintf(`%q`, p.hidden)
		rows := []struct {
			name, policy, says string
		}{
			{"null", `null`, "JSON object"},
			{"list", `[]`, "JSON object"},
			{"number", `1`, "JSON object"},
			{"text", `"` + canary + `"`, "JSON object"},
			{"no version", `{"x":"` + canary + `"}`, "version"},
			{"empty object", `{}`, "version"},
			{"version 2", `{"version":2}`, "version"},
			{"version text", `{"version":"1"}`, "version"},
			{"version 1.0", `{"version":1.0}`, "version"},
			{"version 1e0", `{"version":1e0}`, "version"},
			{"version null", `{"version":null}`, "version"},
			{"unknown key", `{"version":1,"hiden":["/` + canary + `"]}`, "hiden"},
			{"another case", `{"version":1,"Hidden":["/` + canary + `"]}`, "Hidden"},
			{"duplicate key", `{"version":1,"hidden":[` + h + `],"hidden":[]}`, "hidden"},
			{"duplicate by escape", `{"version":1,"hidden":[` + h + `],"h\u0069dden":[]}`, "hidden"},
			{"duplicate version", `{"version":1,"version":1}`, "version"},
			{"nested duplicate", `{"version":1,"log":{"level":"info","to":"/a","to":"/b"}}`, "log.to"},
			{"required text", `{"version":1,"required":"true"}`, "required"},
			{"required null", `{"version":1,"required":null}`, "required"},
			{"hidden text", `{"version":1,"hidden":"` + canary + `"}`, "hidden"},
			{"hidden null", `{"version":1,"hidden":null}`, "hidden"},
			{"hidden number", `{"version":1,"hidden":[1]}`, "hidden[0]"},
			{"hidden nested", `{"version":1,"hidden":[["/a"]]}`, "hidden[0]"},
			{"hidden relative", `{"version":1,"hidden":["/a","` + canary + `/b"]}`, "hidden[1]"},
			{"hidden empty text", `{"version":1,"hidden":[""]}`, "hidden[0]"},
			{"hidden home", `{"version":1,"hidden":["~/` + canary + `"]}`, "hidden[0]"},
			{"hidden root", `{"version":1,"hidden":["/"]}`, "hidden[0]"},
			{"hidden root by dots", `{"version":1,"hidden":["//./"]}`, "hidden[0]"},
			{"NUL", `{"version":1,"hidden":["/a\u0000` + canary + `"]}`, "hidden[0]"},
			{"half a surrogate", `{"version":1,"hidden":["/a\ud800` + canary + `"]}`, "hidden[0]"},
			{"not UTF-8", "{\"version\":1,\"hidden\":[\"/a\xff" + canary + "\"]}", "hidden[0]"},
			{"control character", "{\"version\":1,\"hidden\":[\"/a\n" + canary + "\"]}", "JSON"},
			{"long name", `{"version":1,"hidden":["/` + strings.Repeat("n", 256) + `"]}`, "hidden[0]"},
			{"long path", `{"version":1,"hidden":["` + strings.Repeat("/n", 2100) + `"]}`, "hidden[0]"},
			{"too many entries", `{"version":1,"hidden":[` + strings.Repeat(`"/a",`, 4096) + `"/a"]}`, "hidden"},
			{"root missing", `{"version":1,"hidden":[{"path":"${root}/a"}]}`, "root"},
			{"root relative", `{"version":1,"root":"` + canary + `","hidden":["/a"]}`, "root"},
			{"root with dots", `{"version":1,"root":"/a/../b","hidden":["/a"]}`, "root"},
			{"network without udp", `{"version":1,"network":{"connectTCP":[1]}}`, "network.udp"},
			{"network, no such port", `{"version":1,"network":{"connectTCP":[65536],"udp":"deny"}}`, "network.connectTCP"},
			{"exposed relative", `{"version":1,"hidden":["/a"],"exposed":["` + canary + `"]}`, "exposed[0]"},
			{"exposed alone", `{"version":1,"exposed":["/a"]}`, "exposed"},
			{"precreate relative", `{"version":1,"precreate":["` + canary + `"]}`, "precreate[0]"},
			{"program relative", `{"version":1,"program":"` + canary + `"}`, "program"},
			{"program list", `{"version":1,"program":["/bin/sh"]}`, "program"},
			{"scope", `{"version":1,"scope":"` + canary + `"}`, "scope"},
			{"frozen", `{"version":1,"frozen":"` + canary + `"}`, "frozen"},
			{"capabilities", `{"version":1,"capabilities":["` + canary + `"]}`, "capabilities"},
			{"report relative", `{"version":1,"report":"` + canary + `"}`, "report"},
			{"report on stdout", `{"version":1,"report":"fd:1"}`, "report"},
			{"report fd", `{"version":1,"report":"fd:` + canary + `"}`, "report"},
			{"report fd huge", `{"version":1,"report":"fd:99999999999999999999"}`, "report"},
			{"log without level", `{"version":1,"log":{"to":"/a"}}`, "log.level"},
			{"log level", `{"version":1,"log":{"level":"` + canary + `","to":"/a"}}`, "log.level"},
			{"log text", `{"version":1,"log":"/a"}`, "log"},
			{"env list", `{"version":1,"env":["` + canary + `"]}`, "env"},
			{"env number", `{"version":1,"env":{"set":{"A":1}}}`, "env.set.A"},
			{"env equals", `{"version":1,"env":{"set":{"A=B":"` + canary + `"}}}`, "env.set"},
			{"env NUL", `{"version":1,"env":{"set":{"A":"a\u0000` + canary + `"}}}`, "env.set.A"},
			{"env policy", `{"version":1,"env":{"set":{"SANDBOX_EXEC_SHIM_POLICY":"` + canary + `"}}}`, "env.set.SANDBOX_EXEC_SHIM_POLICY"},
			{"env unset policy", `{"version":1,"env":{"unset":["SANDBOX_EXEC_SHIM_POLICY"]}}`, "env.unset[0]"},
			{"env both", `{"version":1,"env":{"unset":["A"],"set":{"A":"` + canary + `"}}}`, "env.set.A"},
			{"unrestricted and more", `{"version":1,"scope":"unrestricted","capabilities":"restricted"}`, "capabilities"},
			{"trailing object", `{"version":1}{}`, "after the policy"},
			{"trailing text", `{"version":1} ` + canary, "after the policy"},
			{"trailing comma", `{"version":1,}`, ""},
			{"comment", `{"version":1}//` + canary, "after the policy"},
			{"byte order mark", "\ufeff" + `{"version":1}`, ""},
			{"cut off", `{"version":1,"hidden":[` + h, ""},
			{"cut in a text", `{"version":1,"hidden":["/` + canary, ""},
			{"single quotes", `{'version':1}`, ""},
			{"bomb of lists", strings.Repeat("[", 100_000), "JSON object"},
			{"bomb in a key", `{"version":1,"hidden":` + strings.Repeat("[", 60_000) + strings.Repeat("]", 60_000) + `}`, "too deep"},
			{"bomb of objects", strings.Repeat(`{"a":`, 20_000), "too deep"},
			{"bomb of entries", `{"version":1,"hidden":[` + strings.Repeat(`"/",`, 25_000) + `"/"]}`, "hidden"},
			{"at nothing", `@`, "absolute"},
			{"at relative", `@` + canary, "absolute"},
			{"at a policy", `@{"version":1,"hidden":["/` + canary + `"]}`, "absolute"},
			{"at missing", "@" + launch.Nowhere + "/policy", launch.Nowhere + "/policy"},
			{"at directory", `@` + p.work, "not a regular file"},
			{"at device", `@/dev/zero`, "not a regular file"},
		}
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				r := p.wantNotStarted(t, p.mark(row.policy), 125, "SANDBOX_EXEC_SHIM_POLICY", row.says)
				shown := strings.ReplaceAll(r.Stderr, `"/a\x00`+canary, "") // the path concerned may be said
				if strings.Contains(shown, canary) {
					t.Errorf("the value is repeated: %q", r.Stderr)
				}
				if len(r.Stderr) > 1200 {
					t.Errorf("%d bytes on stderr", len(r.Stderr))
				}
			})
		}
		// The control: the same launch with a good policy of many spellings.
		p.wantStarted(t, p.mark(" \n{ \"version\" : 1 ,\t\"h\\u0069dden\":["+h+"] }\r\n"))
	})
}

func TestTwoPoliciesStop(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		good := "SANDBOX_EXEC_SHIM_POLICY=" + fmt.Sprintf(`{"version":1,"hidden":[%q]}`, p.hidden)
		for name, second := range map[string]string{"other": `{"version":1}`, "blank": "", "spaces": " ", "itself and a space": good[len("SANDBOX_EXEC_SHIM_POLICY="):] + " "} {
			for _, env := range [][]string{{good, "SANDBOX_EXEC_SHIM_POLICY=" + second}, {"SANDBOX_EXEC_SHIM_POLICY=" + second, good}} {
				t.Run(name, func(t *testing.T) {
					c := p.mark(nil)
					c.Env = append([]string{"PATH=/usr/bin:/bin"}, env...)
					p.wantNotStarted(t, c, 125, "SANDBOX_EXEC_SHIM_POLICY", "twice")
				})
			}
		}
		c := p.sh(readSecret, nil)
		c.Env = []string{"PATH=/usr/bin:/bin", good, good}
		p.wantDenied(t, c)
		p.wantReadable(t)
	})
}

func TestPolicyFileIsReadWhole(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		text := fmt.Sprintf(`{"version":1,"hidden":[%q]}`, p.hidden)
		path := filepath.Join(p.work, "policy.json")

		u.Write(t, path, text+strings.Repeat(" ", 1<<20-len(text)), 0o600)
		p.wantDenied(t, p.sh(readSecret, "@"+path))
		p.wantStarted(t, p.mark("@"+path))
		u.Write(t, path, text+strings.Repeat(" ", 1<<20-len(text)+1), 0o600)
		p.wantNotStarted(t, p.mark("@"+path), 125, "1 MiB")
		u.Write(t, path, " \n", 0o600)
		p.wantNotStarted(t, p.mark("@"+path), 125, "empty")
		u.Write(t, path, `{"version":1,"hidden":["`+canary+`"]}`, 0o600)
		if r := p.wantNotStarted(t, p.mark("@"+path), 125, "hidden[0]", path); strings.Contains(r.Stderr, canary) {
			t.Errorf("the value is repeated: %q", r.Stderr)
		}

		fifo := filepath.Join(p.work, "fifo")
		if err := syscall.Mkfifo(fifo, 0o666); err != nil {
			t.Fatal(err)
		}
		u.Own(t, fifo)
		p.wantNotStarted(t, p.mark("@"+fifo), 125, "not a regular file")

		link := filepath.Join(p.work, "link")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		u.Write(t, path, text, 0o600)
		p.wantDenied(t, p.sh(readSecret, "@"+link))

		if u != launch.Root {
			if err := os.Chmod(path, 0); err != nil {
				t.Fatal(err)
			}
			p.wantNotStarted(t, p.mark("@"+path), 125, path, "permission denied")
		}
	})
}
