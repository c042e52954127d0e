package rules

// leafDirs are the directories of ToolchainLeaves: the temp directory, and for
// each tool just what it writes while it builds. Those that are not there are
// made, with mode 0700.
//
// To add a tool, add lines: the variable that the tool itself reads comes
// first. A directory must not be named, and must not hold by default,
//
//   - what belongs on PATH, or what something on PATH runs (~/.cargo/bin,
//     ~/go/bin, the toolchains of rustup, uv's interpreters);
//   - credentials or settings (~/.cargo/credentials.toml, ~/.m2/settings.xml,
//     ~/.gradle/init.d, auth.json of composer).
//
// The first rule is why a wrapper's distributions are listed and rustup's
// toolchains are not: a project's script names the former itself.
var leafDirs = []toolDir{
	{"temp", variants{"$TMPDIR", "/tmp"}, 0},
	{"go", variants{"$GOTMPDIR"}, 0},

	// go help environment. The checksum database's state stays in GOPATH.
	{"go", variants{"$GOCACHE", "$XDG_CACHE_HOME/go-build", "~/.cache/go-build"}, leaf},
	{"go", variants{"$GOMODCACHE", "$GOPATH/pkg/mod", "~/go/pkg/mod"}, leaf},
	{"go", variants{"$GOPATH/pkg/sumdb", "~/go/pkg/sumdb"}, leaf},

	// npm help config, "cache". npm reads its variables in any case.
	{"npm", variants{"$npm_config_cache", "$NPM_CONFIG_CACHE", "~/.npm"}, leaf},
	{"node-gyp", variants{"$npm_config_devdir", "$XDG_CACHE_HOME/node-gyp", "~/.cache/node-gyp"}, leaf},
	{"corepack", variants{"$COREPACK_HOME", "$XDG_CACHE_HOME/node/corepack", "~/.cache/node/corepack"}, leaf},
	// pnpm.io/settings, storeDir, cacheDir, stateDir. PNPM_HOME is on PATH.
	{"pnpm", variants{"$npm_config_store_dir", "$PNPM_HOME/store", "$XDG_DATA_HOME/pnpm/store", "~/.local/share/pnpm/store"}, leaf},
	{"pnpm", variants{"$npm_config_cache_dir", "$XDG_CACHE_HOME/pnpm", "~/.cache/pnpm"}, leaf},
	{"pnpm", variants{"$npm_config_state_dir", "$XDG_STATE_HOME/pnpm", "~/.local/state/pnpm"}, leaf},
	// Yarn 1 has a cache, later ones a global folder. ~/.yarn/bin is on PATH.
	{"yarn", variants{"$YARN_CACHE_FOLDER", "$XDG_CACHE_HOME/yarn", "~/.cache/yarn"}, leaf},
	{"yarn", variants{"$YARN_GLOBAL_FOLDER", "~/.yarn/berry"}, leaf},
	// bun.sh/docs/install/cache. $BUN_INSTALL/bin is on PATH.
	{"bun", variants{"$BUN_INSTALL_CACHE_DIR", "$BUN_INSTALL/install/cache", "$XDG_CACHE_HOME/.bun/install/cache", "~/.bun/install/cache"}, leaf},
	{"deno", variants{"$DENO_DIR", "$XDG_CACHE_HOME/deno", "~/.cache/deno"}, leaf},
	{"playwright", variants{"$PLAYWRIGHT_BROWSERS_PATH", "$XDG_CACHE_HOME/ms-playwright", "~/.cache/ms-playwright"}, leaf},

	{"pip", variants{"$PIP_CACHE_DIR", "$XDG_CACHE_HOME/pip", "~/.cache/pip"}, leaf},
	{"uv", variants{"$UV_CACHE_DIR", "$XDG_CACHE_HOME/uv", "~/.cache/uv"}, leaf},
	// Poetry keeps the environments of projects in its cache.
	{"poetry", variants{"$POETRY_CACHE_DIR", "$XDG_CACHE_HOME/pypoetry", "~/.cache/pypoetry"}, leaf},

	// doc.rust-lang.org/cargo/guide/cargo-home.html
	{"cargo", variants{"$CARGO_HOME/registry", "~/.cargo/registry"}, leaf},
	{"cargo", variants{"$CARGO_HOME/git", "~/.cargo/git"}, leaf},
	{"rustup", variants{"$RUSTUP_HOME/downloads", "~/.rustup/downloads"}, leaf},
	{"rustup", variants{"$RUSTUP_HOME/tmp", "~/.rustup/tmp"}, leaf},

	// Maven's repository has no variable. The wrapper has one.
	{"maven", variants{"~/.m2/repository"}, leaf},
	{"maven", variants{"$MAVEN_USER_HOME/wrapper", "~/.m2/wrapper"}, leaf},
	// docs.gradle.org, "Gradle User Home directory"; native and .tmp are not
	// on that page.
	{"gradle", variants{"$GRADLE_USER_HOME/caches", "~/.gradle/caches"}, leaf},
	{"gradle", variants{"$GRADLE_USER_HOME/daemon", "~/.gradle/daemon"}, leaf},
	{"gradle", variants{"$GRADLE_USER_HOME/jdks", "~/.gradle/jdks"}, leaf},
	{"gradle", variants{"$GRADLE_USER_HOME/native", "~/.gradle/native"}, leaf},
	{"gradle", variants{"$GRADLE_USER_HOME/notifications", "~/.gradle/notifications"}, leaf},
	{"gradle", variants{"$GRADLE_USER_HOME/workers", "~/.gradle/workers"}, leaf},
	{"gradle", variants{"$GRADLE_USER_HOME/wrapper", "~/.gradle/wrapper"}, leaf},
	{"gradle", variants{"$GRADLE_USER_HOME/.tmp", "~/.gradle/.tmp"}, leaf},

	{"ccache", variants{"$CCACHE_DIR", "$XDG_CACHE_HOME/ccache", "~/.cache/ccache"}, leaf},
	{"ccache", variants{"~/.ccache"}, 0}, // before version 4
	{"sccache", variants{"$SCCACHE_DIR", "$XDG_CACHE_HOME/sccache", "~/.cache/sccache"}, leaf},

	// Composer takes ~/.composer/cache where it is.
	{"composer", variants{"$COMPOSER_CACHE_DIR", "$COMPOSER_HOME/cache", "$XDG_CACHE_HOME/composer", "~/.cache/composer"}, leaf},
	{"composer", variants{"~/.composer/cache"}, 0},

	{"gem", variants{"$GEM_SPEC_CACHE", "$XDG_CACHE_HOME/gem/specs", "~/.cache/gem/specs"}, leaf},
	{"gem", variants{"~/.gem/specs"}, 0},
	{"bundler", variants{"$BUNDLE_USER_CACHE", "$BUNDLE_USER_HOME/cache", "~/.bundle/cache"}, leaf},

	// learn.microsoft.com, "Managing the global packages, cache, and temp
	// folders". http-cache was v3-cache.
	{"nuget", variants{"$NUGET_PACKAGES", "~/.nuget/packages"}, leaf},
	{"nuget", variants{"$NUGET_HTTP_CACHE_PATH", "$XDG_DATA_HOME/NuGet/http-cache", "~/.local/share/NuGet/http-cache"}, leaf},
	{"nuget", variants{"$NUGET_HTTP_CACHE_PATH", "$XDG_DATA_HOME/NuGet/v3-cache", "~/.local/share/NuGet/v3-cache"}, leaf},
	{"nuget", variants{"$NUGET_PLUGINS_CACHE_PATH", "$XDG_DATA_HOME/NuGet/plugins-cache", "~/.local/share/NuGet/plugins-cache"}, leaf},
}

// leaf is the mode of a leaf that is made.
const leaf = 0o700
