package place

import (
	"fmt"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
)

func printTable(v *voice.Caller, found []status, everything bool) error {
	if len(found) == 0 {
		where := ""
		if everything {
			where = " on PATH"
		}
		v.Print("no shim%s\n", where)
		return nil
	}
	w := v.Table()
	fmt.Fprintln(w, "SHIM\tPLACE\tREAL PROGRAM\tPATH FINDS\tSTATE")
	for _, r := range found {
		finds, real := "nothing", "-"
		switch {
		case r.OnPath && r.OK:
			finds = "the shim"
		case r.PathFinds != "":
			finds = voice.Show(r.PathFinds)
		}
		if r.Real != "" {
			real = voice.Show(r.Real)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", voice.Show(r.Path), voice.Dash(r.Place), real, finds, r.State)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range found {
		for _, note := range r.notes() {
			v.Print("  %s: %s\n", voice.Show(r.Path), note)
		}
	}
	return nil
}

// notes are what the table has no column for.
func (r status) notes() []string {
	var notes []string
	if r.Problem != "" {
		notes = append(notes, r.Problem)
	}
	if r.RealResolved != "" && r.RealResolved != r.Real {
		notes = append(notes, "the real program leads to "+voice.Show(r.RealResolved))
	}
	if r.Place == "dir" && r.PathNext != "" && r.PathNext != r.Real {
		notes = append(notes, "without shims PATH would find "+voice.Show(r.PathNext))
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
			notes = append(notes, o.what+voice.Show(o.value))
		}
	}
	if r.Version != "" {
		notes = append(notes, "shim "+r.Version)
	}
	return notes
}
