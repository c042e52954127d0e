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
	{"temp", places{"$TMPDIR", "/tmp"}, 0},
	{"go", places{"$GOTMPDIR"}, 0},

	// go help environment. The checksum database's state stays in GOPATH.
	{"go", places{"$GOCACHE", "$XDG_CACHE_HOME/go-build", "~/.cache/go-build"}, leaf},
	{"go", places{"$GOMODCACHE", "$GOPATH/pkg/mod", "~/go/pkg/mod"}, leaf},
	{"go", places{"$GOPATH/pkg/sumdb", "~/go/pkg/sumdb"}, leaf},

	// npm help config, "cache". npm reads its variables in any case.
	{"npm", places{"$npm_config_cache", "$NPM_CONFIG_CACHE", "~/.npm"}, leaf},
	{"node-gyp", places{"$npm_config_devdir", "$XDG_CACHE_HOME/node-gyp", "~/.cache/node-gyp"}, leaf},
	{"corepack", places{"$COREPACK_HOME", "$XDG_CACHE_HOME/node/corepack", "~/.cache/node/corepack"}, leaf},
	// pnpm.io/settings, storeDir, cacheDir, stateDir. PNPM_HOME is on PATH.
	{"pnpm", places{"$npm_config_store_dir", "$PNPM_HOME/store", "$XDG_DATA_HOME/pnpm/store", "~/.local/share/pnpm/store"}, leaf},
	{"pnpm", places{"$npm_config_cache_dir", "$XDG_CACHE_HOME/pnpm", "~/.cache/pnpm"}, leaf},
	{"pnpm", places{"$npm_config_state_dir", "$XDG_STATE_HOME/pnpm", "~/.local/state/pnpm"}, leaf},
	// Yarn 1 has a cache, later ones a global folder. ~/.yarn/bin is on PATH.
	{"yarn", places{"$YARN_CACHE_FOLDER", "$XDG_CACHE_HOME/yarn", "~/.cache/yarn"}, leaf},
	{"yarn", places{"$YARN_GLOBAL_FOLDER", "~/.yarn/berry"}, leaf},
	// bun.sh/docs/install/cache. $BUN_INSTALL/bin is on PATH.
	{"bun", places{"$BUN_INSTALL_CACHE_DIR", "$BUN_INSTALL/install/cache", "$XDG_CACHE_HOME/.bun/install/cache", "~/.bun/install/cache"}, leaf},
	{"deno", places{"$DENO_DIR", "$XDG_CACHE_HOME/deno", "~/.cache/deno"}, leaf},
	{"playwright", places{"$PLAYWRIGHT_BROWSERS_PATH", "$XDG_CACHE_HOME/ms-playwright", "~/.cache/ms-playwright"}, leaf},

	{"pip", places{"$PIP_CACHE_DIR", "$XDG_CACHE_HOME/pip", "~/.cache/pip"}, leaf},
	{"uv", places{"$UV_CACHE_DIR", "$XDG_CACHE_HOME/uv", "~/.cache/uv"}, leaf},
	// Poetry keeps the environments of projects in its cache.
	{"poetry", places{"$POETRY_CACHE_DIR", "$XDG_CACHE_HOME/pypoetry", "~/.cache/pypoetry"}, leaf},

	// doc.rust-lang.org/cargo/guide/cargo-home.html
	{"cargo", places{"$CARGO_HOME/registry", "~/.cargo/registry"}, leaf},
	{"cargo", places{"$CARGO_HOME/git", "~/.cargo/git"}, leaf},
	{"rustup", places{"$RUSTUP_HOME/downloads", "~/.rustup/downloads"}, leaf},
	{"rustup", places{"$RUSTUP_HOME/tmp", "~/.rustup/tmp"}, leaf},

	// Maven's repository has no variable. The wrapper has one.
	{"maven", places{"~/.m2/repository"}, leaf},
	{"maven", places{"$MAVEN_USER_HOME/wrapper", "~/.m2/wrapper"}, leaf},
	// docs.gradle.org, "Gradle User Home directory"; native and .tmp are not
	// on that page.
	{"gradle", places{"$GRADLE_USER_HOME/caches", "~/.gradle/caches"}, leaf},
	{"gradle", places{"$GRADLE_USER_HOME/daemon", "~/.gradle/daemon"}, leaf},
	{"gradle", places{"$GRADLE_USER_HOME/jdks", "~/.gradle/jdks"}, leaf},
	{"gradle", places{"$GRADLE_USER_HOME/native", "~/.gradle/native"}, leaf},
	{"gradle", places{"$GRADLE_USER_HOME/notifications", "~/.gradle/notifications"}, leaf},
	{"gradle", places{"$GRADLE_USER_HOME/workers", "~/.gradle/workers"}, leaf},
	{"gradle", places{"$GRADLE_USER_HOME/wrapper", "~/.gradle/wrapper"}, leaf},
	{"gradle", places{"$GRADLE_USER_HOME/.tmp", "~/.gradle/.tmp"}, leaf},

	{"ccache", places{"$CCACHE_DIR", "$XDG_CACHE_HOME/ccache", "~/.cache/ccache"}, leaf},
	{"ccache", places{"~/.ccache"}, 0}, // before version 4
	{"sccache", places{"$SCCACHE_DIR", "$XDG_CACHE_HOME/sccache", "~/.cache/sccache"}, leaf},

	// Composer takes ~/.composer/cache where it is.
	{"composer", places{"$COMPOSER_CACHE_DIR", "$COMPOSER_HOME/cache", "$XDG_CACHE_HOME/composer", "~/.cache/composer"}, leaf},
	{"composer", places{"~/.composer/cache"}, 0},

	{"gem", places{"$GEM_SPEC_CACHE", "$XDG_CACHE_HOME/gem/specs", "~/.cache/gem/specs"}, leaf},
	{"gem", places{"~/.gem/specs"}, 0},
	{"bundler", places{"$BUNDLE_USER_CACHE", "$BUNDLE_USER_HOME/cache", "~/.bundle/cache"}, leaf},

	// learn.microsoft.com, "Managing the global packages, cache, and temp
	// folders". http-cache was v3-cache.
	{"nuget", places{"$NUGET_PACKAGES", "~/.nuget/packages"}, leaf},
	{"nuget", places{"$NUGET_HTTP_CACHE_PATH", "$XDG_DATA_HOME/NuGet/http-cache", "~/.local/share/NuGet/http-cache"}, leaf},
	{"nuget", places{"$NUGET_HTTP_CACHE_PATH", "$XDG_DATA_HOME/NuGet/v3-cache", "~/.local/share/NuGet/v3-cache"}, leaf},
	{"nuget", places{"$NUGET_PLUGINS_CACHE_PATH", "$XDG_DATA_HOME/NuGet/plugins-cache", "~/.local/share/NuGet/plugins-cache"}, leaf},
}

// leaf is the mode of a leaf that is made.
const leaf = 0o700
