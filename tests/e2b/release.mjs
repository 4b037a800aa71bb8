// What every release of npm e2b does against the platform: create, run, background, files, watch, PTY, kill. TAP.
import { createRequire } from 'node:module'
import assert from 'node:assert/strict'
import { finish, step } from './tap.mjs'

const e2b = createRequire(process.env.E2B_NODE_MODULES + '/package.json')('e2b')
let sandbox

async function waitFor(what, ready, seconds = 10) {
  for (const end = Date.now() + seconds * 1000; !(await ready()); await new Promise((r) => setTimeout(r, 50)))
    assert.ok(Date.now() < end, `not within ${seconds} s: ${what}`)
}

await step('create', async () => {
  sandbox = await e2b.Sandbox.create('base', { timeoutMs: 120_000, metadata: { release: 'npm' } })
  assert.ok(await sandbox.isRunning())
})

await step('run', async () => {
  const done = await sandbox.commands.run('echo out; echo err >&2')
  assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['out\n', 'err\n', 0])
  await assert.rejects(sandbox.commands.run('exit 3'), (error) => error.exitCode === 3)
})

await step('background: listed, killed', async () => {
  const handle = await sandbox.commands.run('sleep 600', { background: true })
  const runs = async () => (await sandbox.commands.list()).some((p) => p.pid === handle.pid)
  assert.ok(await runs())
  assert.ok(await handle.kill())
  await waitFor('it is gone', async () => !(await runs()))
  await handle.wait().catch(() => {})
})

await step('files: written, read, listed, removed', async () => {
  const bytes = Uint8Array.from({ length: 16384 }, (_, i) => i % 256)
  await sandbox.files.write('release/text', 'grüße\n')
  await sandbox.files.write('release/bytes', bytes.buffer)
  assert.equal(await sandbox.files.read('release/text'), 'grüße\n')
  assert.deepEqual(new Uint8Array(await sandbox.files.read('release/bytes', { format: 'bytes' })), bytes)
  assert.deepEqual((await sandbox.files.list('release')).map((entry) => entry.name).sort(), ['bytes', 'text'])
  await sandbox.files.remove('release/bytes')
  assert.equal(await sandbox.files.exists('release/bytes'), false)
})

await step('watch: a new file is told of', async () => {
  const seen = []
  const watch = sandbox.files.watchDir ?? sandbox.files.watch
  const handle = await watch.call(sandbox.files, 'release', (event) => seen.push(event.name))
  await sandbox.files.write('release/seen', 'x')
  await waitFor('the event', async () => seen.includes('seen'))
  await handle.stop()
})

await step('PTY: input comes back, the size is right', async () => {
  let text = ''
  const handle = await sandbox.pty.create({
    rows: 24, cols: 77, onData: (data) => { text += Buffer.from(data).toString('latin1') },
  })
  await sandbox.pty.sendInput(handle.pid, new TextEncoder().encode('stty size; exit 5\n'))
  await assert.rejects(handle.wait(), (error) => error.exitCode === 5)
  assert.match(text, /24 77/)
})

await step('kill', async () => {
  assert.notEqual(await sandbox.kill(), false)
  assert.equal(await sandbox.isRunning(), false)
})

finish()
