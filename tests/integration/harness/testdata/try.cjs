// Tries what RUNNER_TRIES lists. An outcome is "ok" or the name of the error.
'use strict';
const fs = require('node:fs');
const net = require('node:net');

const ops = {
  read: (path) => fs.readFileSync(path),
  list: (path) => fs.readdirSync(path),
  write: (path) => fs.appendFileSync(path, '+'),
  create: (path) => {
    fs.writeFileSync(path, '', { flag: 'wx' });
    fs.unlinkSync(path);
  },
  connect: (path) =>
    new Promise((resolve, reject) => {
      const socket = net.connect(path, () => {
        socket.destroy();
        resolve();
      });
      socket.on('error', reject);
    }),
};

const list = JSON.parse(process.env.RUNNER_TRIES);

async function outcomes() {
  const out = [];
  for (const { op, path } of list) {
    try {
      await ops[op](path);
      out.push('ok');
    } catch (err) {
      out.push(err.code ?? String(err));
    }
  }
  return out;
}

module.exports = { list, outcomes };

async function main([when, go, done]) {
  if (when === 'later') {
    // Should nobody ever say go.
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), 150_000).unref();
    await fs.promises.readFile(go);
    fs.writeFileSync(done, JSON.stringify({ parent: process.ppid, outcomes: await outcomes() }));
    return;
  }
  process.stdout.write(JSON.stringify(await outcomes()) + '\n');
}

if (require.main === module) main(process.argv.slice(2));
