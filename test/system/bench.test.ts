import { spawnSync } from 'node:child_process'
import { expect } from 'chai'

for (const script of ['bench/bench.mjs', 'bench/sizing.mjs']) {
  describe(script, () => {
    it('finds everything that it imports from the build', () => {
      const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' })
      expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' })
    })
  })
}
