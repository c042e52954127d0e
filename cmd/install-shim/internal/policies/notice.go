package policies

import (
	"path"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// NoticeHelp is the help text of notice.
const NoticeHelp = `install-shim notice [--policy FILE|-] [--profile-dir DIR]

Prints the sentences that a model should be told before it works under the
policy, one a line: the scope and the network; that temp and cache directories
are writable, where scope workspace makes them so; that the network is blocked,
where it is.

It says what the policy asks for. What a launch could hold of it stands in its
report.

Example:

  install-shim notice --policy policy.json
`

// Notice prints what to tell a model before a launch.
func Notice(v *voice.Caller, args []string) error {
	var file string
	var rec record.Record
	f := voice.NewFlags("notice")
	f.Text(&file, "policy")
	f.Text(&rec.ProfileDir, "profile-dir")
	if err := f.ReadAll(args); err != nil {
		return err
	}
	if rec.ProfileDir != "" && !path.IsAbs(rec.ProfileDir) {
		return f.Wrong("--profile-dir " + voice.Show(rec.ProfileDir) + ": is not absolute")
	}
	p, err := Read(v, "notice", file, rec)
	if err != nil {
		return err
	}
	for _, line := range rules.Notice(p.Policy) {
		v.Print("%s\n", line)
	}
	return nil
}
