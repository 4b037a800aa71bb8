// The official JavaScript E2B SDK, unmodified, against a live instance.
//
//     node scenario.mjs [--env NAME]          (node_modules holding `e2b` beside it, or in NODE_PATH's folder)
//
// The instance is given by the E2B_* variables alone. Prints TAP: 'ok N - what', 'not ok N - what'.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { finish, step } from './tap.mjs'

// An import is resolved from this file's own folder; the SDK is installed under build/, named by E2B_NODE_MODULES.
const where = process.env.E2B_NODE_MODULES ? pathToFileURL(process.env.E2B_NODE_MODULES + '/') : import.meta.url
const require = createRequire(where)
const { Sandbox, CommandExitError, TimeoutError, NotFoundError } = require('e2b')
const { version } = require('e2b/package.json')

const self = fileURLToPath(import.meta.url)
const option = (name, fallback) => {
  const at = process.argv.indexOf(name)
  return at < 0 ? fallback : process.argv[at + 1]
}
const env = option('--env', 'base')
const other = option('--connect', null)
const metadata = { scenario: 'javascript', run: String(process.pid) }

if (other) {
  // The second process: connects by id with the same key, uses the sandbox.
  const sandbox = await Sandbox.connect(other)
  assert.equal(await sandbox.files.read('note.txt'), 'from the first process')
  await sandbox.files.write('answer.txt', 'from the second process')
  console.log((await sandbox.commands.run('echo second')).stdout.trim())
  process.exit(0)
}

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex')

async function isListed(id) {
  const pages = Sandbox.list()
  while (pages.hasNext) {
    const items = await pages.nextItems()
    if (items.some((item) => item.sandboxId === id)) return true
  }
  return false
}

console.log(`# e2b ${version}, node ${process.version}`)
let sandbox

await step(`create a sandbox from env ${env}`, async () => {
  sandbox = await Sandbox.create(env, { timeoutMs: 120_000, metadata })
  assert.ok(sandbox.sandboxId)
})
if (!sandbox) finish()

await step('isRunning is true', async () => assert.equal(await sandbox.isRunning(), true))

await step('commands.run gives text', async () => {
  const result = await sandbox.commands.run("echo hello && python3 -c 'print(6 * 7)'")
  assert.equal(result.stdout, 'hello\n42\n')
  assert.equal(result.exitCode, 0)
  assert.equal(result.stderr, '')
})

await step('commands.run gives the exit code and stderr', async () => {
  await assert.rejects(sandbox.commands.run('echo out; echo bad >&2; exit 7'), (error) => {
    assert.ok(error instanceof CommandExitError, String(error))
    assert.equal(error.exitCode, 7)
    assert.equal(error.stderr, 'bad\n')
    assert.equal(error.stdout, 'out\n')
    return true
  })
})

await step('commands.run streams through callbacks, with env variables, cwd and UTF-8', async () => {
  let seen = ''
  const result = await sandbox.commands.run('echo "$WORD"; pwd', {
    envs: { WORD: 'grüße 你好' }, cwd: '/tmp', onStdout: (data) => { seen += data },
  })
  assert.equal(result.stdout, 'grüße 你好\n/tmp\n')
  assert.equal(seen, result.stdout)
})

await step('commands.run as root and as the default user', async () => {
  assert.equal((await sandbox.commands.run('id -un', { user: 'root' })).stdout.trim(), 'root')
  assert.equal((await sandbox.commands.run('id -un')).stdout.trim(), 'user')
})

await step('a background command is listed, connected to, killed', async () => {
  const handle = await sandbox.commands.run('echo started; sleep 600', { background: true })
  const pids = async () => (await sandbox.commands.list()).map((one) => one.pid)
  assert.ok((await pids()).includes(handle.pid))
  const again = await sandbox.commands.connect(handle.pid)
  assert.equal(again.pid, handle.pid)
  again.wait().catch(() => {}) // ended by the kill below, as told by the other handle
  assert.equal(await sandbox.commands.kill(handle.pid), true)
  await handle.wait().catch((error) => assert.ok(error instanceof CommandExitError, String(error)))
  const deadline = Date.now() + 5000
  while ((await pids()).includes(handle.pid)) {
    assert.ok(Date.now() < deadline, 'still listed five seconds after kill')
    await new Promise((done) => setTimeout(done, 50))
  }
  assert.equal(await sandbox.commands.kill(handle.pid), false)
})

await step('stdin is sent and read', async () => {
  const handle = await sandbox.commands.run('read line; echo "got $line"', { background: true, stdin: true })
  await sandbox.commands.sendStdin(handle.pid, 'a line\n')
  assert.equal((await handle.wait()).stdout, 'got a line\n')
})

await step("a command's timeout ends it", async () => {
  const start = Date.now()
  await assert.rejects(sandbox.commands.run('sleep 60', { timeoutMs: 1000 }), TimeoutError)
  assert.ok(Date.now() - start < 10_000)
})

await step('files: text is written and read', async () => {
  await sandbox.files.write('note.txt', 'from the first process')
  assert.equal(await sandbox.files.read('note.txt'), 'from the first process')
  assert.equal(await sandbox.files.exists('note.txt'), true)
  assert.equal((await sandbox.commands.run('cat note.txt')).stdout, 'from the first process')
})

await step('files: 10 MB of bytes go in and come back', async () => {
  const data = randomBytes(10 * 1024 * 1024)
  await sandbox.files.write('/tmp/ten.bin', new Blob([data]))
  const inside = (await sandbox.commands.run('sha256sum < /tmp/ten.bin')).stdout.split(' ')[0]
  assert.equal(inside, sha256(data))
  assert.equal(sha256(await sandbox.files.read('/tmp/ten.bin', { format: 'bytes' })), sha256(data))
})

await step('files: directories are made, listed, files renamed and removed', async () => {
  const names = async () => (await sandbox.files.list('/tmp/tree')).map((entry) => entry.name).sort()
  await sandbox.files.makeDir('/tmp/tree')
  await sandbox.files.write('/tmp/tree/one', '1')
  await sandbox.files.write('/tmp/tree/two', '22')
  assert.deepEqual(await names(), ['one', 'two'])
  await sandbox.files.rename('/tmp/tree/two', '/tmp/tree/three')
  assert.deepEqual(await names(), ['one', 'three'])
  await sandbox.files.remove('/tmp/tree/one')
  assert.equal(await sandbox.files.exists('/tmp/tree/one'), false)
  await sandbox.files.remove('/tmp/tree')
  assert.equal(await sandbox.files.exists('/tmp/tree'), false)
})

await step("files: a missing file is the SDK's own error", async () => {
  await assert.rejects(sandbox.files.read('/tmp/nothing-here'), NotFoundError)
})

await step('getInfo carries the metadata and a future end', async () => {
  const info = await sandbox.getInfo()
  assert.equal(info.sandboxId, sandbox.sandboxId)
  for (const [key, value] of Object.entries(metadata)) assert.equal(info.metadata[key], value)
  assert.ok(info.endAt > info.startedAt)
})

await step('the sandbox is listed', async () => assert.equal(await isListed(sandbox.sandboxId), true))

await step('a second process connects by id and uses it', async () => {
  const printed = execFileSync(process.execPath, [self, '--connect', sandbox.sandboxId], { timeout: 60_000 })
  assert.equal(printed.toString(), 'second\n')
  assert.equal(await sandbox.files.read('answer.txt'), 'from the second process')
})

await step('setTimeout moves the end', async () => {
  await sandbox.setTimeout(600_000)
  const left = ((await sandbox.getInfo()).endAt - Date.now()) / 1000
  assert.ok(left >= 590 && left <= 602, `${left} s left`)
})

await step('an unknown env is refused with its name', async () => {
  await assert.rejects(Sandbox.create('no-such-env', { timeoutMs: 60_000 }), /no-such-env/)
})

await step('kill is true, then false', async () => {
  assert.equal(await sandbox.kill(), true)
  assert.equal(await sandbox.kill(), false)
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
})

await step('a killed sandbox is not running and not listed', async () => {
  assert.equal(await sandbox.isRunning(), false)
  assert.equal(await isListed(sandbox.sandboxId), false)
})

finish()
