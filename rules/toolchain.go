package rules

import (
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// A toolDir is one line of the tables of toolchain directories: where a tool
// keeps what can be made again.
type toolDir struct {
	tool string
	variants
	// mode is that of [ToolchainDir].
	mode uint32
}

// variants are the paths that one directory may have; the first that is known
// counts. One begins with "$NAME", a variable that the tool reads, with "~/", or
// with "/"; it is not known when the variable is unset or blank or there is no
// HOME. $GOPATH is a list, and each of its directories counts.
//
// As literals they are laid out by the compiler; what a function returns, every
// launch would have to build.
type variants []string

// usualDirs are the directories of ToolchainUsual, in the order in which they
// are reported.
var usualDirs = []toolDir{
	{"temp", variants{"$TMPDIR", "/tmp"}, 0},
	{"user caches", variants{"$XDG_CACHE_HOME", "~/.cache"}, 0},
	{"user caches", variants{"~/.cache"}, 0o755},
	{"go", variants{"$GOCACHE"}, 0},
	{"go", variants{"$GOMODCACHE", "$GOPATH/pkg", "~/go/pkg"}, 0o755},
	{"npm", variants{"~/.npm"}, 0},
	{"cargo", variants{"~/.cargo/registry"}, 0},
	{"cargo", variants{"~/.cargo/git"}, 0},
	{"go", variants{"$GOTMPDIR"}, 0},
}

// A ToolchainDir is a toolchain directory of one launch.
type ToolchainDir struct {
	// Path is absolute and not cleaned; symbolic links are followed.
	Path string
	// Variable is the environment variable that names it, or "".
	Variable string
	// Mode holds the permission bits with which it is made where it does not
	// exist, 0 if it never is.
	Mode uint32
}

// In returns the toolchain directories that a program with this environment has,
// and what is wrong with its variables. Those of {"owned": …} are the cache root
// and, last, the temp directory in it. In the variables of the many tools of
// ToolchainLeaves a relative path is nothing unusual: it means the project.
func (t ToolchainDirs) In(env []string) (list []ToolchainDir, warnings []string) {
	var table []toolDir
	switch t.Mode {
	case ToolchainUsual:
		table = usualDirs
	case ToolchainLeaves:
		table = leafDirs
	case ToolchainOwned:
		return []ToolchainDir{{Path: t.Owned, Mode: leaf}, {Path: pathcheck.Join(t.Owned, ownedTemp), Mode: leaf}}, nil
	}
	for _, d := range table {
		for _, variant := range d.variants {
			found, relative := locate(variant, env)
			for _, name := range relative {
				text := "the environment variable " + name + " holds a relative path, which makes nothing writable"
				if t.Mode == ToolchainUsual && !slices.Contains(warnings, text) {
					warnings = append(warnings, text)
				}
			}
			for i, w := range found {
				if i == 0 {
					w.Mode = d.mode
				}
				list = append(list, w)
			}
			if len(found)+len(relative) > 0 {
				break
			}
		}
	}
	return list, warnings
}

// locate returns the absolute paths of a variant; relative holds the names of
// variables that give a relative one.
func locate(variant string, env []string) (found []ToolchainDir, relative []string) {
	if variant[0] == '/' {
		return []ToolchainDir{{Path: variant}}, nil
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(variant, "$"), "/")
	if variant[0] == '~' {
		name = "HOME"
	}
	value, _ := lookupEnv(env, name)
	values := []string{value}
	if name == "GOPATH" {
		values = strings.Split(value, ":")
	}
	for _, v := range values {
		switch {
		case Blank(v):
		case v[0] == '/':
			w := ToolchainDir{Path: v}
			if rest != "" {
				w.Path = strings.TrimRight(v, "/") + "/" + rest
			}
			if name != "HOME" {
				w.Variable = name
			}
			found = append(found, w)
		case name != "HOME":
			relative = append(relative, name)
		}
	}
	return found, relative
}

// lookupEnv returns the first value of a variable, as getenv(3) does.
func lookupEnv(env []string, name string) (value string, ok bool) {
	for _, s := range env {
		if v, found := strings.CutPrefix(s, name+"="); found {
			return v, true
		}
	}
	return "", false
}

// ownedTemp is the temp directory in a cache root that the harness owns.
const ownedTemp = "tmp"

// ownedVars points the tools into a cache root that the harness owns. In a
// value, "%" stands for the root.
var ownedVars = []EnvVar{
	{"BUNDLE_USER_CACHE", "%/bundler"},
	{"BUN_INSTALL_CACHE_DIR", "%/bun"},
	{"CARGO_HOME", "%/cargo"},
	{"CCACHE_DIR", "%/ccache"},
	{"COMPOSER_CACHE_DIR", "%/composer"},
	{"COREPACK_HOME", "%/corepack"},
	{"DENO_DIR", "%/deno"},
	{"GEM_SPEC_CACHE", "%/gem"},
	{"GOCACHE", "%/go-build"},
	{"GOMODCACHE", "%/go-mod"},
	{"GOTMPDIR", "%/" + ownedTemp},
	{"GRADLE_USER_HOME", "%/gradle"},
	{"MAVEN_ARGS", "-Dmaven.repo.local=%/maven"}, // from Maven 3.9
	{"MAVEN_USER_HOME", "%/maven-wrapper"},
	{"NUGET_HTTP_CACHE_PATH", "%/nuget-http"},
	{"NUGET_PACKAGES", "%/nuget"},
	{"NUGET_PLUGINS_CACHE_PATH", "%/nuget-plugins"},
	{"PIP_CACHE_DIR", "%/pip"},
	{"PLAYWRIGHT_BROWSERS_PATH", "%/playwright"},
	{"PNPM_HOME", "%/pnpm"},
	{"POETRY_CACHE_DIR", "%/poetry"},
	{"SCCACHE_DIR", "%/sccache"},
	{"TMPDIR", "%/" + ownedTemp},
	{"UV_CACHE_DIR", "%/uv"},
	{"XDG_CACHE_HOME", "%/cache"},
	{"YARN_CACHE_FOLDER", "%/yarn"},
	{"YARN_GLOBAL_FOLDER", "%/yarn-berry"},
	{"npm_config_cache", "%/npm"},
}

// ToolchainEnv returns the variables that point the tools into the cache root
// of {"owned": …}. What the policy's own env names is left to it. env is the
// environment of the program so far: MAVEN_ARGS is not replaced but added to.
func (p *Policy) ToolchainEnv(env []string) EnvChange {
	var c EnvChange
	if p.Scope != ScopeWorkspace || p.Toolchain.Mode != ToolchainOwned {
		return c
	}
	for _, v := range ownedVars {
		if slices.Contains(p.Env.Unset, v.Name) || slices.ContainsFunc(p.Env.Set, func(s EnvVar) bool { return s.Name == v.Name }) {
			continue
		}
		v.Value = strings.ReplaceAll(v.Value, "%", p.Toolchain.Owned)
		if old, ok := lookupEnv(env, v.Name); ok && v.Name == "MAVEN_ARGS" && !Blank(old) {
			v.Value = old + " " + v.Value
		}
		c.Set = append(c.Set, v)
	}
	return c
}
