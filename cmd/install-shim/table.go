package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
)

func (a *admin) printJSON(reports []shadowed) error {
	text, err := json.MarshalIndent(struct {
		Version int        `json:"version"`
		Shims   []shadowed `json:"shims"`
	}{1, reports}, "", "  ")
	if err != nil {
		return err
	}
	a.print(string(text) + "\n")
	return nil
}

func (a *admin) printTable(reports []shadowed, everything bool) error {
	if len(reports) == 0 {
		if everything {
			a.print("no shim on PATH\n")
		} else {
			a.print("no shim\n")
		}
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SHIM\tPLACE\tREAL PROGRAM\tPATH FINDS\tSTATE")
	for _, r := range reports {
		finds := "nothing"
		switch {
		case r.OnPath && r.State == stateOK:
			finds = "the shim"
		case r.PathFinds != "":
			finds = show(r.PathFinds)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", show(r.Path), dash(r.Place), dash(shown(r.Real)), finds, r.State)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range reports {
		for _, note := range r.notes() {
			a.print("  " + show(r.Path) + ": " + note + "\n")
		}
	}
	return nil
}

// notes are what the table has no column for.
func (r shadowed) notes() []string {
	var notes []string
	if r.Problem != "" {
		notes = append(notes, r.Problem)
	}
	if r.RealResolved != "" && r.RealResolved != r.Real {
		notes = append(notes, "the real program leads to "+show(r.RealResolved))
	}
	if r.Place == "dir" && r.PathNext != "" && r.PathNext != r.Real {
		notes = append(notes, "without shims PATH would find "+show(r.PathNext))
	}
	if r.PolicyEnv != "" && r.PolicyEnv != boot.DefaultPolicyEnv {
		notes = append(notes, "takes its policy from "+r.PolicyEnv)
	}
	for _, o := range []struct{ what, value, usual string }{
		{"on a missing policy: ", r.OnMissing, "pass"},
		{"argv[0]: ", r.Argv0, "keep"},
		{"report: ", r.Report, ""},
		{"log: ", r.Log, ""},
		{"profiles: ", r.ProfileDir, ""},
	} {
		if o.value != "" && o.value != o.usual {
			notes = append(notes, o.what+show(o.value))
		}
	}
	if r.Version != "" {
		notes = append(notes, "shim "+r.Version)
	}
	return notes
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func shown(s string) string {
	if s == "" {
		return ""
	}
	return show(s)
}
