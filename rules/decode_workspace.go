package rules

import (
	"slices"
)

// workspaceKeys are the keys that only say something about scope workspace.
var workspaceKeys = [...]string{"workspace", "writable", "toolchainDirs"}

// finishWorkspace checks the keys of scope workspace once the scope is known,
// and fills in their defaults. given are the keys of the policy and its profile.
func (p *Policy) finishWorkspace(given []string) error {
	if p.Scope == ScopeWorkspace {
		if p.Toolchain.Mode == ToolchainUnset {
			p.Toolchain.Mode = ToolchainUsual
		}
		return nil
	}
	for _, key := range workspaceKeys {
		if slices.Contains(given, key) {
			return &Error{Key: key, Msg: `only allowed with scope "workspace"`}
		}
	}
	return nil
}

const badToolchain = `must be true, false, "leaves" or {"owned": an absolute path}`

func (r *jsonReader) toolchain(key string) (ToolchainDirs, error) {
	switch r.next() {
	case '"':
		_, err := r.choice(key, badToolchain, string(ToolchainLeaves))
		return ToolchainDirs{Mode: ToolchainLeaves}, err
	case '{':
		var dirs ToolchainDirs
		err := r.object(key, badToolchain, func(name string) (err error) {
			at := joinKey(key, name)
			if name != "owned" {
				return &Error{Key: at, Msg: unknownKey}
			}
			dirs.Mode = ToolchainOwned
			dirs.Owned, err = r.path(at)
			return err
		})
		if err == nil && dirs.Mode == ToolchainUnset {
			err = &Error{Key: joinKey(key, "owned"), Msg: "missing"}
		}
		return dirs, err
	}
	switch string(r.data[r.pos:]) {
	case "true":
		return ToolchainDirs{Mode: ToolchainUsual}, nil
	case "false":
		return ToolchainDirs{Mode: ToolchainNone}, nil
	}
	return ToolchainDirs{}, &Error{Key: key, Msg: badToolchain}
}
