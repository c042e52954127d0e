package place

import (
	"regexp"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// recordOptions are the options of install that go into the record.
type recordOptions struct {
	rec              record.Record
	onMissing, argv0 string
}

func (o *recordOptions) register(f voice.Flags) {
	o.onMissing, o.argv0 = record.Pass.String(), record.Keep.String()
	f.Text(&o.rec.PolicyEnv, "policy-env")
	f.Text(&o.onMissing, "on-missing")
	f.Text(&o.argv0, "argv0")
	f.Text(&o.rec.Report, "report")
	f.Text(&o.rec.Log, "log")
	f.Text(&o.rec.ProfileDir, "profile-dir")
}

// variableName is what shells can set.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// record makes the part of a record that is the same for all names.
func (o *recordOptions) record(f voice.Flags) (record.Record, error) {
	r := o.rec
	switch {
	case r.PolicyEnv != "" && !variableName.MatchString(r.PolicyEnv):
		return r, f.Wrong("--policy-env " + voice.Show(r.PolicyEnv) + ": is not a variable name")
	case r.PolicyEnv == "PATH" || r.PolicyEnv == "HOME" || strings.HasPrefix(r.PolicyEnv, "LD_"):
		return r, f.Wrong("--policy-env " + r.PolicyEnv + ": the program needs this variable, and the shim removes it")
	case o.onMissing == record.Refuse.String():
		return r, voice.Refused("--on-missing refuse", "is not supported by this version: a confined program's own children, which carry no policy, cannot be told from other callers yet")
	case o.onMissing != record.Pass.String():
		return r, f.Wrong("--on-missing " + voice.Show(o.onMissing) + ": must be pass or refuse")
	case o.argv0 == record.Real.String():
		r.Argv0 = record.Real
	case o.argv0 != record.Keep.String():
		return r, f.Wrong("--argv0 " + voice.Show(o.argv0) + ": must be keep or real")
	}
	// The rules for paths are the record's own; the real path comes later.
	complete := r
	complete.Real = "/x"
	if err := complete.Validate(); err != nil {
		return r, f.Wrong(err.Error())
	}
	return r, nil
}
