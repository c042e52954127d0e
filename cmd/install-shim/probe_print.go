package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
)

// printProbe prints the table or the JSON, and what is not as expected.
func (a *admin) printProbe(o *probeOptions, res *probeResult) error {
	failures := res.failures()
	var err error
	if o.json {
		err = a.printProbeJSON(res, failures)
	} else {
		err = a.printProbeTable(o, res)
	}
	if err != nil {
		return err
	}
	if res.report.Mechanism == "unavailable" {
		a.say(unavailable + "the policy does not require the confinement, and this kernel does not have it")
	}
	for _, g := range res.report.NotEnforced {
		if !g.Limit {
			a.say("warning", "not enforced: "+g.What+": "+g.Why)
		}
	}
	for _, f := range failures {
		a.say(ineffective + f)
	}
	if failures != nil || res.report.Mechanism == "unavailable" {
		return errSaid
	}
	return nil
}

// failures are one sentence for each check that failed.
func (res *probeResult) failures() []string {
	var out []string
	for _, c := range res.checks {
		if c.OK {
			continue
		}
		text := c.Name + ": " + c.Op + " " + show(c.Path)
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
func (res *probeResult) results() map[string]string {
	out := map[string]string{"harnessFile": "unprobed", "harnessDirectory": "unprobed", "harnessDirectoryStat": "unprobed"}
	failed := map[string]bool{}
	seen := map[string]bool{}
	for _, c := range res.checks {
		if !seen[c.Name] || !c.OK && !failed[c.Name] {
			out[c.Name] = c.Result
		}
		seen[c.Name] = true
		failed[c.Name] = failed[c.Name] || !c.OK
	}
	return out
}

func (a *admin) printProbeJSON(res *probeResult, failures []string) error {
	if failures == nil {
		failures = []string{}
	}
	text, err := json.MarshalIndent(struct {
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
		1, len(failures) == 0 && res.report.Mechanism != "unavailable", res.shim, res.installed, res.name,
		res.report.Mechanism, res.report.Network, res.results(), failures, res.checks,
	}, "", "  ")
	if err != nil {
		return err
	}
	a.print(string(text) + "\n")
	return nil
}

func (a *admin) printProbeTable(o *probeOptions, res *probeResult) error {
	what := "a copy of " + show(res.shim)
	if !res.installed {
		what += ", which is not installed for it"
	}
	a.print(fmt.Sprintf("%s: %s; %s\n", show(res.name), what, res.report.Mechanism))
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tTRY\tRESULT\tEXPECTED\tOUTSIDE\tBY")
	for _, row := range probeRows(res.checks, o.all) {
		c := row.check
		mark := ""
		if !c.OK {
			mark = " FAILED"
		}
		result := c.Result
		if c.Errno != "" {
			result += " " + c.Errno
		}
		fmt.Fprintf(w, "%s\t%s %s\t%s%s\t%s\t%s\t%s\n",
			showName(c.Name), c.Op, show(c.Path), result, mark, dash(c.Expected), dash(c.Outside), row.by)
	}
	return w.Flush()
}

// showName quotes the path behind "hidden:" and "exposed:".
func showName(name string) string {
	for _, kind := range []string{"hidden:", "exposed:"} {
		if p, ok := strings.CutPrefix(name, kind); ok {
			return kind + show(p)
		}
	}
	return show(name)
}

// A probeRow is one line of the table.
type probeRow struct {
	*check
	by string
}

// probeRows takes the ways to one path together where all came to the same.
func probeRows(checks []*check, all bool) []probeRow {
	var rows []probeRow
	for _, c := range checks {
		by := c.Way
		if by == "" {
			by = "path"
		}
		if n := len(rows) - 1; !all && n >= 0 {
			last := rows[n]
			if last.Name == c.Name && last.Op == c.Op && last.Path == c.Path && last.Result == c.Result && last.Expected == c.Expected && last.OK == c.OK {
				rows[n].by += ", " + by
				continue
			}
		}
		rows = append(rows, probeRow{c, by})
	}
	return rows
}
