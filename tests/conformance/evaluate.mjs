// Reads the results of http-cache-tests (standard input), and prints `id kind result` for each test: the judgement of the suite itself,
// which knows the tests that a test depends on. Runs in the folder of the package.
import fs from 'fs'
import path from 'path'
import { pathToFileURL } from 'url'

const load = async file => import(pathToFileURL(path.resolve(file)))
const suites = [...(await load('tests/index.mjs')).default]
// The module is for browsers, too; what it needs of them is not used here.
const { determineTestResult } = await load('lib/display.mjs')
const results = JSON.parse(fs.readFileSync(0, 'utf8'))
const names = { '✅': 'pass', '⛔️': 'fail', '⚠️': 'optional_fail', '⚪️': 'dependency_fail', '🔹': 'setup_fail' }
for (const suite of suites) {
  for (const test of suite.tests) {
    if (test.browser_only) continue
    const result = determineTestResult(suites, test.id, results)
    const why = results[test.id] === true ? '' : JSON.stringify(results[test.id])
    console.log([test.id, test.kind || 'required', names[result[2]] || result[2], why].join('\t'))
  }
}
