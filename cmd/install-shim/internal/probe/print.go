package probe

import (
	"fmt"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
)

// print prints the table or the JSON, and what is not as expected.
func (res *result) print(v *voice.Caller, o *options) error {
	failures, missing := res.failures(), res.report.Mechanism == "unavailable"
	ok := failures == nil && !missing
	var err error
	if o.json {
		err = res.printJSON(v, failures, ok)
	} else {
		err = res.printTable(v, o.all)
	}
	if err != nil {
		return err
	}
	if missing {
		v.Say(unavailable + "the policy does not require the confinement, and this kernel does not have it")
	}
	for _, g := range res.report.NotEnforced {
		if !g.Limit {
			v.Say("warning", "not enforced: "+g.What+": "+g.Why)
		}
	}
	for _, f := range failures {
		v.Say(ineffective + f)
	}
	if !ok {
		return voice.ErrSaid
	}
	return nil
}

// failures are one sentence for each check that failed.
func (res *result) failures() []string {
	var out []string
	for _, c := range res.checks {
		if c.OK {
			continue
		}
		text := c.Name + ": " + c.Op + " " + voice.Show(c.Path)
		if c.Way != "" {
			text += " by " + c.Way
		}
		text += ": " + c.Result
		if c.Errno != "" {
			text += " (" + c.Errno + ")"
		}
		text += ", expected " + c.Expected
		if c.Result == "absent" {
			text += ": there is nothing, so that nothing was shown"
		}
		out = append(out, text)
	}
	return out
}

// results gives each key one word: that of its first failed check, else of its
// first check.
func (res *result) results() map[string]string {
	out := map[string]string{"harnessFile": "unprobed", "harnessDirectory": "unprobed", "harnessDirectoryStat": "unprobed"}
	first := map[string]*check{}
	for _, c := range res.checks {
		if had := first[c.Name]; had == nil || had.OK && !c.OK {
			first[c.Name], out[c.Name] = c, c.Result
		}
	}
	return out
}

func (res *result) printJSON(v *voice.Caller, failures []string, ok bool) error {
	return v.PrintJSON(struct {
		Version   int               `json:"version"`
		OK        bool              `json:"ok"`
		Shim      string            `json:"shim"`
		Installed bool              `json:"installed"`
		Target    string            `json:"target"`
		Mechanism string            `json:"sandbox_mechanism"`
		Network   string            `json:"sandbox_network"`
		Results   map[string]string `json:"results"`
		Failures  []string          `json:"failures"`
		Checks    []*check          `json:"checks"`
	}{
		1, ok, res.shim, res.installed, res.name,
		res.report.Mechanism, res.report.Network, res.results(), voice.Listed(failures), res.checks,
	})
}

func (res *result) printTable(v *voice.Caller, all bool) error {
	what := "a copy of " + voice.Show(res.shim)
	if !res.installed {
		what += ", which is not installed for it"
	}
	v.Print("%s: %s; %s\n", voice.Show(res.name), what, res.report.Mechanism)
	w := v.Table()
	fmt.Fprintln(w, "CHECK\tTRY\tRESULT\tEXPECTED\tOUTSIDE\tBY")
	for _, c := range rows(res.checks, all) {
		text := c.Result
		if c.Errno != "" {
			text += " " + c.Errno
		}
		if !c.OK {
			text += " FAILED"
		}
		fmt.Fprintf(w, "%s\t%s %s\t%s\t%s\t%s\t%s\n",
			showName(c.Name), c.Op, voice.Show(c.Path), text, voice.Dash(c.Expected), voice.Dash(c.Outside), c.by)
	}
	return w.Flush()
}

// showName quotes the path behind "hidden:" and "exposed:".
func showName(name string) string {
	for _, kind := range []string{"hidden:", "exposed:"} {
		if p, ok := strings.CutPrefix(name, kind); ok {
			return kind + voice.Show(p)
		}
	}
	return voice.Show(name)
}

// A row is one line of the table.
type row struct {
	*check
	by string
}

// rows takes the ways to one path together where all came to the same.
func rows(checks []*check, all bool) []row {
	var out []row
	for _, c := range checks {
		by := c.Way
		if by == "" {
			by = "path"
		}
		if n := len(out) - 1; !all && n >= 0 {
			last := out[n]
			if last.Name == c.Name && last.Op == c.Op && last.Path == c.Path && last.Result == c.Result && last.Expected == c.Expected && last.OK == c.OK {
				out[n].by += ", " + by
				continue
			}
		}
		out = append(out, row{c, by})
	}
	return out
}
