package rules

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// forbidden are files and directories that no leaf may be, hold or lie in: what
// is on PATH or run by something that is, credentials, and settings that run
// code. Each is one that a tool of the table really has.
var forbidden = []string{
	"~/.bashrc", "~/.profile", "~/.ssh", "~/.gnupg", "~/.gitconfig", "~/.netrc", "~/.docker", "~/.config", "~/bin", "~/.local/bin",
	"~/go/bin", "~/go/src",
	"~/.npmrc", "~/.yarnrc", "~/.yarnrc.yml", "~/.yarn/bin", "~/.local/share/pnpm/pnpm", "~/.local/share/pnpm/global", "~/.config/pnpm/rc",
	"~/.bun/bin", "~/.bun/install/global", "~/.bunfig.toml", "~/.deno/bin",
	"~/.cargo/bin", "~/.cargo/env", "~/.cargo/config.toml", "~/.cargo/config", "~/.cargo/credentials.toml", "~/.cargo/credentials",
	"~/.rustup/toolchains", "~/.rustup/settings.toml",
	"~/.pypirc", "~/.config/pypoetry/auth.toml", "~/.local/share/pypoetry", "~/.local/share/uv/credentials", "~/.local/share/uv/python",
	"~/.local/share/uv/tools", "~/.local/lib",
	"~/.m2/settings.xml", "~/.m2/settings-security.xml", "~/.m2/toolchains.xml", "~/.m2/extensions.xml",
	"~/.gradle/gradle.properties", "~/.gradle/init.gradle", "~/.gradle/init.d",
	"~/.config/composer/auth.json", "~/.config/composer/vendor/bin", "~/.composer/auth.json", "~/.composer/vendor/bin",
	"~/.gem/credentials", "~/.gem/ruby", "~/.local/share/gem", "~/.bundle/config", "~/.bundle/plugin",
	"~/.nuget/NuGet/NuGet.Config", "~/.dotnet", "~/.dotnet/tools",
	"~/.cache/huggingface", "~/.cache/huggingface/token", "~/.cache/mozilla", "~/.cache/google-chrome", "~/.cache/gh",
	"~/.config/ccache", "~/.config/sccache",
}

// TestLeavesHoldNothingElse walks the table in the home directory that tools
// use by default, and in one where every variable of the tools is set to its
// usual place.
func TestLeavesHoldNothingElse(t *testing.T) {
	// What the variables that name more than a cache are usually set to.
	usual := []string{
		"XDG_CACHE_HOME=/h/.cache", "XDG_DATA_HOME=/h/.local/share", "XDG_STATE_HOME=/h/.local/state", "GOPATH=/h/go", "CARGO_HOME=/h/.cargo",
		"RUSTUP_HOME=/h/.rustup", "GRADLE_USER_HOME=/h/.gradle", "MAVEN_USER_HOME=/h/.m2", "BUN_INSTALL=/h/.bun", "PNPM_HOME=/h/.local/share/pnpm",
		"COMPOSER_HOME=/h/.config/composer", "BUNDLE_USER_HOME=/h/.bundle",
	}
	for name, env := range map[string][]string{"defaults": nil, "usual": usual} {
		t.Run(name, func(t *testing.T) {
			list, warnings := ToolchainDirs{Mode: ToolchainLeaves}.In(append([]string{"HOME=/h"}, env...))
			if warnings != nil {
				t.Errorf("warnings: %v", warnings)
			}
			if len(list) < 40 {
				t.Errorf("only %d leaves", len(list))
			}
			for _, w := range list {
				if !strings.HasPrefix(w.Path, "/h/") {
					if w.Path != "/tmp" {
						t.Errorf("%q is neither in the home nor the temp directory", w.Path)
					}
					continue
				}
				if w.Path != pathcheck.Join("/h", strings.Trim(strings.TrimPrefix(w.Path, "/h"), "/")) || strings.Count(w.Path, "/") < 3 && w.Path != "/h/.npm" && w.Path != "/h/.ccache" {
					t.Errorf("%q is not a leaf", w.Path)
				}
				for _, f := range forbidden {
					f = strings.Replace(f, "~", "/h", 1)
					if pathcheck.Within(w.Path, f) || pathcheck.Within(f, w.Path) {
						// A leaf may lie in a directory of settings, not in a forbidden leaf of it.
						if f == "/h/.config" && strings.HasPrefix(w.Path, "/h/.config/composer/cache") {
							continue
						}
						t.Errorf("%q makes %q writable", w.Path, f)
					}
				}
			}
		})
	}
}

// TestForbiddenIsFound: the walk above does find what it looks for.
func TestForbiddenIsFound(t *testing.T) {
	for _, bad := range []string{"/h/.cargo", "/h/.cache", "/h", "/h/.m2", "/h/.gradle", "/h/.cargo/bin", "/h/.cargo/bin/x"} {
		if !slices.ContainsFunc(forbidden, func(f string) bool {
			f = strings.Replace(f, "~", "/h", 1)
			return pathcheck.Within(bad, f) || pathcheck.Within(f, bad)
		}) {
			t.Errorf("%q is not found", bad)
		}
	}
}

// TestLeavesHonourVariables: each variable of the table really moves its line,
// and the tools that are promised are there.
func TestLeavesHonourVariables(t *testing.T) {
	tools := map[string]bool{}
	for _, d := range leafDirs {
		tools[d.tool] = true
		for i, variant := range d.variants {
			if !strings.HasPrefix(variant, "$") {
				continue
			}
			name, rest, _ := strings.Cut(variant[1:], "/")
			want := pathcheck.Join("/v", rest)
			// The ones before it are unset.
			env := []string{"HOME=/h", name + "=/v"}
			list, _ := ToolchainDirs{Mode: ToolchainLeaves}.In(env)
			if !slices.ContainsFunc(list, func(w ToolchainDir) bool { return w.Path == want && w.Variable == name }) {
				t.Errorf("%s[%d]: %s=/v does not give %q", d.tool, i, name, want)
			}
		}
		if last := d.variants[len(d.variants)-1]; strings.HasPrefix(last, "$") && last != "$GOTMPDIR" {
			t.Errorf("%s has no default: %v", d.tool, d.variants)
		}
	}
	for _, tool := range []string{
		"go", "npm", "pnpm", "yarn", "bun", "pip", "uv", "poetry", "cargo", "rustup", "maven", "gradle", "ccache", "sccache", "composer",
		"gem", "bundler", "nuget", "deno", "playwright",
	} {
		if !tools[tool] {
			t.Errorf("%s is missing", tool)
		}
	}
}

// TestOwnedVarsAreDocumented: the reference names every variable that
// {"owned": …} changes.
func TestOwnedVarsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### `toolchainDirs`\n")
	section, _, _ = strings.Cut(section, "\n### ")
	for _, v := range ownedVars {
		if !strings.Contains(section, "`"+v.Name+"`") {
			t.Errorf("%s is not in the reference", v.Name)
		}
		if !strings.Contains(v.Value, "%/") {
			t.Errorf("%s does not point into the root", v.Name)
		}
	}
	if !slices.IsSortedFunc(ownedVars, func(a, b EnvVar) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the variables are not sorted")
	}
}
