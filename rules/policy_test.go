package rules_test

import (
	"strings"
	"testing"
)

// TestMeans: what each key needs, each alone. A launch takes no other means.
func TestMeans(t *testing.T) {
	for keys, want := range map[string]string{
		`"precreate":["/a"]`:                        "",
		`"hidden":["/a"],"scope":"unrestricted"`:    "confines files landlock",
		``:                                          "",
		`"scope":"unrestricted"`:                    "",
		`"required":false,"hidden":[]`:              "",
		`"hidden":["/a"]`:                           "confines files landlock",
		`"scope":"workspace"`:                       "confines files landlock",
		`"network":"allow"`:                         "",
		`"network":"deny"`:                          "confines network landlock seccomp",
		`"network":{"udp":"deny"}`:                  "confines files network landlock seccomp",
		`"network":{"udp":"allow"}`:                 "confines files network landlock seccomp",
		`"network":{"udp":"allow","connectTCP":[]}`: "confines network landlock seccomp",
		`"network":{"udp":"allow","bindTCP":[80]}`:  "confines network landlock seccomp",
		`"isolate":["signals"]`:                     "confines landlock",
		`"isolate":["abstract-unix"]`:               "confines landlock",
		`"isolate":["unix-sockets"]`:                "confines files landlock seccomp",
		`"isolate":["proc"]`:                        "confines files landlock",
		`"isolate":["tty"]`:                         "confines seccomp",
		`"capabilities":"restricted"`:               "confines",
		`"capabilities":"keep"`:                     "",
		`"descriptors":"keep"`:                      "",
		`"descriptors":"close"`:                     "confines",
		`"descriptors":{"keep":[3]}`:                "confines",
		`"commandCheck":"deny"`:                     "",
		`"commandCheck":"deny","scope":"workspace"`: "confines files landlock command",
		`"commandCheck":"deny","network":"deny"`:    "confines network landlock seccomp command",
		`"commandCheck":"deny","hidden":["/a"]`:     "confines files landlock",
	} {
		text := `{"version":1,` + keys + `}`
		if keys == "" {
			text = `{"version":1}`
		}
		p := parse(t, text)
		var got []string
		for _, m := range []struct {
			name string
			uses bool
		}{
			{"confines", p.Confines()},
			{"files", p.ConfinesFiles()},
			{"network", p.ConfinesNetwork()},
			{"landlock", p.UsesLandlock()},
			{"seccomp", p.UsesSeccomp()},
			{"command", p.ChecksCommand()},
		} {
			if m.uses {
				got = append(got, m.name)
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
