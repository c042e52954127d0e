// An eval harness, which is the server, too: it sets one variable and starts one
// runner a session. Its argument is a file that says where everything is; it
// prints what became of each launch.
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { isDeepStrictEqual, promisify } from 'node:util';

const plan = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const variable = 'PAPERCLIP_RUNNER_E2E_AGENT_FS_SANDBOX';
const policy = JSON.stringify({ hidden: plan.hidden, required: true, instanceRoot: plan.instance });
const runnerState = path.join(plan.instance, 'runtime/paperclip-runner');

// launch returns what the functions of node:child_process are given.
function launch({ session, other, form, held, waits = false }) {
  const fill = (text) => text.replaceAll('$own', session).replaceAll('$other', other).replaceAll('$harness', String(process.pid));
  const env = {
    ...process.env,
    PATH: form.path,
    PAPERCLIP_PROVIDER_TRACE_PATH: path.join(plan.instance, 'data/provider-traces', session),
    RUNNER_LIB: plan.lib,
    RUNNER_TRIES: JSON.stringify(plan.tries.map((t) => ({ op: t.op, path: fill(t.path) }))),
    RUNNER_GIT: JSON.stringify(plan.git),
  };
  if (waits) env.RUNNER_WAITS = '1';
  const own = path.join(runnerState, 'durable-sessions', session);
  return {
    command: form.command,
    args: ['--state-dir', path.join(own, 'runner'), '--session-id', session],
    options: { cwd: plan.workspace, env: held ? { ...env, [variable]: policy } : env, encoding: 'utf8' },
    env,
    own,
    about: { session, form: form.name, held },
  };
}

// collect waits for a child's end.
async function collect(child) {
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data) => (stdout += data));
  child.stderr.on('data', (data) => (stderr += data));
  const [code, signal] = await once(child, 'close');
  return { pid: child.pid, code: code ?? signal, stdout, stderr };
}

const ways = {
  spawn: ({ command, args, options }) => collect(spawn(command, args, options)),
  spawnSync: ({ command, args, options }) => {
    const { pid, status, signal, stdout, stderr, error } = spawnSync(command, args, options);
    if (error) throw error;
    return { pid, code: status ?? signal, stdout, stderr };
  },
  execFile: ({ command, args, options }) =>
    new Promise((resolve) => {
      const child = execFile(command, args, options, (err, stdout, stderr) =>
        resolve({ pid: child.pid, code: err ? err.code : 0, stdout, stderr }),
      );
    }),
  // Throws on failure; what it prints to standard error goes to ours.
  execFileSync: ({ command, args, options }) => ({ code: 0, stdout: execFileSync(command, args, options), stderr: '' }),
  promisified: async ({ command, args, options }) => {
    const running = promisify(execFile)(command, args, options);
    const { stdout, stderr } = await running;
    return { pid: running.child.pid, code: 0, stdout, stderr };
  },
};

// finish tells the process that the shell left behind to make its tries, and puts
// together what is known of a launch. The runner has ended by then.
async function finish(l, way, ended, extra = {}) {
  if (ended.code !== 0) return { ...l.about, way, code: ended.code, stderr: ended.stderr };
  const said = JSON.parse(ended.stdout.trimEnd().split('\n').at(-1));
  await fs.promises.writeFile(path.join(l.own, 'go'), '');
  const background = JSON.parse(await fs.promises.readFile(path.join(l.own, 'done'), 'utf8'));
  return {
    ...l.about,
    way,
    code: 0,
    stderr: ended.stderr + said.shellErrors,
    pid: said.pid,
    samePID: ended.pid === undefined || ended.pid === said.pid,
    sameParent: said.parent === process.pid,
    sameEnv: isDeepStrictEqual(said.env, l.env),
    sameCwd: said.cwd === plan.workspace,
    variableGone: !said.environ.includes(variable),
    outlived: ![said.pid, said.shellPID].includes(background.parent),
    tries: { runner: said.runner, shell: said.shell, node: said.node, background: background.outcomes },
    git: said.git,
    ...extra,
  };
}

async function everyWay() {
  const out = [];
  for (const form of plan.forms) {
    for (const [way, start] of Object.entries(ways)) {
      for (const held of [true, false]) {
        const session = `${way}-${form.name}-${held ? 'held' : 'free'}`;
        const l = launch({ session, other: 'other', form, held });
        out.push(await finish(l, way, await start(l)));
      }
    }
  }
  return out;
}

// twoSessions has two runners alive at once, and adds to the instance before
// either goes on.
async function twoSessions() {
  const out = [];
  for (const form of plan.forms) {
    for (const held of [true, false]) {
      const name = (which) => `${which}-${form.name}-${held ? 'held' : 'free'}`;
      const pair = [
        launch({ session: name('one'), other: name('two'), form, held, waits: true }),
        launch({ session: name('two'), other: name('one'), form, held, waits: true }),
      ];
      const children = pair.map(({ command, args, options }) => spawn(command, args, options));
      const ends = children.map(collect);
      const ready = (child, end) =>
        Promise.race([once(child.stdout, 'data'), end.then((e) => Promise.reject(new Error(`ended: ${JSON.stringify(e)}`)))]);
      await Promise.all(children.map((child, i) => ready(child, ends[i])));
      const added = plan.late.map((file) => {
        const made = fs.mkdirSync(path.dirname(file), { recursive: true });
        fs.writeFileSync(file, 'late');
        return made ?? file;
      });
      children.forEach((child) => child.stdin.end('go\n'));
      for (const [i, end] of ends.entries()) out.push(await finish(pair[i], 'spawn', await end));
      // It has to be late for the next pair, too.
      for (const entry of added) fs.rmSync(entry, { recursive: true });
    }
  }
  return out;
}

async function channel() {
  const out = [];
  for (const form of plan.forms) {
    for (const held of [true, false]) {
      const l = launch({ session: `channel-${form.name}-${held ? 'held' : 'free'}`, other: 'other', form, held });
      const child = spawn(l.command, l.args, { ...l.options, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
      const sent = { text: 'x'.repeat(100_000), session: l.about.session };
      let answered = false;
      child.on('message', (message) => {
        if (message === 'ready') child.send(sent);
        else answered = isDeepStrictEqual(message, { answer: sent });
      });
      const ended = await collect(child);
      out.push(await finish(l, 'ipc', ended, { answered }));
    }
  }
  return out;
}

const database = net.createServer((socket) => socket.destroy()).listen(plan.socket);
await once(database, 'listening');
const launches = await { everyWay, twoSessions, channel }[plan.scenario]();
database.close();
process.stdout.write(JSON.stringify(launches));
