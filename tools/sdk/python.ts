import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CACHE, type Language, ROOT, runStep, tryCommand } from './language.ts'

/** Versions that are installed; another one may make another client. */
const PACKAGES = ['openapi-python-client==0.29.1', 'build==1.3.0', 'cryptography==46.0.3']

const ENVIRONMENT = join(CACHE, 'python')
const PYTHON = join(ENVIRONMENT, 'bin', 'python')
const SOURCES = join(ROOT, 'sdk', 'python')
const VERIFIERS = join(ROOT, 'docs', 'guides', 'verify', 'python')

/** The client for Python, by openapi-python-client, as wheel and source distribution. */
export const python: Language = {
  name: 'python',
  prepare: () => {
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...PACKAGES]
    return (existsSync(PYTHON) || tryCommand('python3', ['-m', 'venv', ENVIRONMENT])) && tryCommand(PYTHON, install)
  },
  build: (folder) => {
    const generated = join(folder, 'package')
    const generator = join(ENVIRONMENT, 'bin', 'openapi-python-client')
    const document = join(ROOT, 'openapi.json')
    const config = join(SOURCES, 'config.yml')
    runStep(
      generator,
      ['generate', '--path', document, '--output-path', generated, '--meta', 'pdm', '--config', config],
      {
        cwd: folder,
      },
    )
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    const project = readFileSync(join(generated, 'pyproject.toml'), 'utf8')
    const described = project
      .replace(/^version = .*$/m, `version = "${version}"`)
      .replace(/^description = .*$/m, 'description = "Client of the Signalbox API, and verification of its webhooks"')
      .replace(/^readme = .*$/m, 'readme = "README.md"\nlicense = "Apache-2.0"')
      .replace(
        /^\[build-system\]$/m,
        '[project.optional-dependencies]\nasymmetric = ["cryptography>=42"]\n\n[build-system]',
      )
    writeFileSync(join(generated, 'pyproject.toml'), described)
    copyFileSync(join(SOURCES, 'README.md'), join(generated, 'README.md'))
    copyFileSync(join(ROOT, 'LICENSE'), join(generated, 'LICENSE'))
    copyFileSync(join(SOURCES, 'problems.py'), join(generated, 'signalbox', 'problems.py'))
    copyFileSync(join(VERIFIERS, 'verify.py'), join(generated, 'signalbox', 'webhooks.py'))
    copyFileSync(join(VERIFIERS, 'asymmetric.py'), join(generated, 'signalbox', 'asymmetric.py'))
    runStep(PYTHON, ['-m', 'compileall', '-q', 'signalbox'], { cwd: generated })
    runStep(PYTHON, ['-m', 'build', '--outdir', folder, generated], { cwd: folder })
  },
  test: (folder, env) => {
    const own = join(folder, 'environment')
    runStep('python3', ['-m', 'venv', own], { cwd: folder })
    const installed = join(own, 'bin', 'python')
    const wheel = runStep('ls', [folder], { cwd: folder })
      .split('\n')
      .find((name) => name.endsWith('.whl'))
    if (wheel === undefined) throw new Error('python: no wheel was built')
    runStep(
      installed,
      ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', `${join(folder, wheel)}[asymmetric]`],
      {
        cwd: folder,
      },
    )
    runStep(installed, ['-c', 'import signalbox.asymmetric'], { cwd: folder })
    console.log(runStep(installed, [join(SOURCES, 'test_main_job.py')], { cwd: folder, env }).trim())
  },
}
