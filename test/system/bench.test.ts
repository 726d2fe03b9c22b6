import { spawnSync } from 'node:child_process'
import { expect } from 'chai'

describe('npm run bench', () => {
  it('finds everything that it imports from the build', () => {
    const { status, stderr } = spawnSync(process.execPath, ['bench/bench.mjs', '--check'], { encoding: 'utf8' })
    expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' })
  })
})
