// TAP on stdout, for the programs in here that run with an SDK's own packages and nothing else.
let count = 0
let failures = 0

export async function step(what, run) {
  count++
  const start = performance.now()
  try {
    await run()
    console.log(`ok ${count} - ${what} (${Math.round(performance.now() - start)} ms)`)
  } catch (error) {
    failures++
    console.log(`not ok ${count} - ${what}: ${String(error).replace(/\n/g, ' ').slice(0, 300)}`)
    for (const line of String(error?.stack ?? error).split('\n')) console.log('#   ' + line)
  }
}

export function finish() {
  console.log(`1..${count}`)
  process.exit(failures ? 1 : 0)
}
