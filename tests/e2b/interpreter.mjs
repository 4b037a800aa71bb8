// What every release of npm @e2b/code-interpreter does against the platform. TAP.
import { createRequire } from 'node:module'
import assert from 'node:assert/strict'
import { finish, step } from './tap.mjs'

const ci = createRequire(process.env.E2B_NODE_MODULES + '/package.json')('@e2b/code-interpreter')
let sandbox

await step('create: the default template', async () => {
  sandbox = await ci.Sandbox.create({ timeoutMs: 300_000, envs: { OF_SANDBOX: 'everywhere' } })
})

await step('state is kept from cell to cell, cells are counted', async () => {
  await sandbox.runCode('x = 41')
  const done = await sandbox.runCode('x + 1')
  assert.deepEqual([done.text, done.error, done.executionCount], ['42', undefined, 2])
})

await step('stdout and stderr come in their order, while the cell runs', async () => {
  const seen = [], times = []
  const note = (message) => { seen.push([message.line, message.error]); times.push(Date.now()) }
  const done = await sandbox.runCode(
    "import sys, time\nprint('one', flush=True)\ntime.sleep(1)\nprint('two', file=sys.stderr, flush=True)\n" +
    "time.sleep(1)\nprint('three')", { onStdout: note, onStderr: note })
  assert.deepEqual(seen, [['one\n', false], ['two\n', true], ['three\n', false]])
  assert.ok(times[2] - times[0] > 1000, String(times))
  assert.deepEqual([done.logs.stdout, done.logs.stderr], [['one\n', 'three\n'], ['two\n']])
})

await step('an error has name, value and traceback', async () => {
  const { error } = await sandbox.runCode('def f():\n    return 1 / 0\nf()')
  assert.deepEqual([error.name, error.value], ['ZeroDivisionError', 'division by zero'])
  assert.match(error.traceback, /return 1 \/ 0/)
})

await step('several results of several kinds', async () => {
  const seen = []
  const done = await sandbox.runCode(
    "from IPython.display import *\ndisplay(HTML('<b>b</b>'))\ndisplay(Markdown('*m*'))\n{'a': [1, 2]}",
    { onResult: (result) => { seen.push(result) } })
  assert.equal(seen.length, 3)
  assert.deepEqual([done.results[0].html, done.results[1].markdown, done.results[2].json], ['<b>b</b>', '*m*', { a: [1, 2] }])
  assert.deepEqual(done.results.map((each) => each.isMainResult), [false, false, true])
})

await step('a plot is a PNG of its size, and its data', async () => {
  const { results: [plot] } = await sandbox.runCode(
    "import matplotlib.pyplot as plt\nplt.figure(figsize=(4, 3), dpi=100)\nplt.bar(['a', 'b'], [1, 2])\nplt.show()")
  const png = Buffer.from(plot.png, 'base64')
  assert.equal(png.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n')
  assert.ok(png.readUInt32BE(16) > 250 && png.readUInt32BE(16) < 500, String(png.readUInt32BE(16)))
  if (plot.chart) assert.deepEqual(plot.chart.elements.map((bar) => [bar.label, bar.value]), [['a', 1], ['b', 2]])
})

await step("envs: the cell's alone, over the sandbox's", async () => {
  const code = "import os; os.environ.get('OF_SANDBOX'), os.environ.get('OF_CELL')"
  assert.equal((await sandbox.runCode(code, { envs: { OF_CELL: 'here' } })).text, "('everywhere', 'here')")
  assert.equal((await sandbox.runCode(code)).text, "('everywhere', None)")
})

await step('contexts are apart, and have a folder', async () => {
  await sandbox.files.write('/home/user/sub/data.txt', 'data')
  const context = await sandbox.createCodeContext({ cwd: '/home/user/sub' })
  assert.deepEqual([context.language, context.cwd], ['python', '/home/user/sub'])
  assert.equal((await sandbox.runCode('x', { context })).error.name, 'NameError')
  assert.equal((await sandbox.runCode("open('data.txt').read()", { context })).text, 'data')
  if (sandbox.restartCodeContext) {
    await sandbox.runCode('y = 1', { context })
    await sandbox.restartCodeContext(context)
    assert.equal((await sandbox.runCode('y', { context })).error.name, 'NameError')
    await sandbox.removeCodeContext(context)
    assert.ok(!(await sandbox.listCodeContexts()).some((each) => each.id === context.id))
  }
})

await step('a cell that takes too long is interrupted, the next one runs', async () => {
  await assert.rejects(sandbox.runCode('import time\nfor i in range(600): time.sleep(1)', { timeoutMs: 2000 }), /imed? ?out/i)
  assert.equal((await sandbox.runCode('i > 0 and x')).text, '41')
})

await step('a kernel that dies is told of, and the next cell has a fresh one', async () => {
  const { error } = await sandbox.runCode('import os; os._exit(7)')
  assert.equal(error.name, 'ContextRestarting')
  assert.equal((await sandbox.runCode('x')).error.name, 'NameError')
})

await step('a language that is not here is refused by name', async () => {
  await assert.rejects(sandbox.runCode('1', { language: 'cobol' }), /no kernel for cobol/)
})

await step('kill', async () => {
  assert.notEqual(await sandbox.kill(), false)
})

finish()
