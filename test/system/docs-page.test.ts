import { expect } from 'chai'
import type { Browser, BrowserContext, Locator, Page, Response } from 'playwright-core'
import { launchChromium } from '../support/chromium.js'
import type { ServiceProcess } from '../support/process.js'
import { endProcesses, startService } from '../support/process.js'
import { until } from '../support/until.js'

/** The page in a new browser profile, with its requests and its console output. */
interface OpenDocs {
  readonly page: Page
  /** The URLs of all requests, including those that failed. */
  readonly requested: readonly string[]
  /** Errors and warnings of the console, which include violations of the Content-Security-Policy, and uncaught errors. */
  readonly problems: readonly string[]
}

interface Operation {
  readonly path: string
  readonly method: string
  readonly operationId: string
  readonly summary: string
}

/** The names of the samples on the page: the language and the library. */
const SAMPLES = [
  ['Shell', 'Curl'],
  ['JavaScript', 'Fetch'],
  ['Python', 'Requests'],
  ['Go', 'NewRequest'],
] as const

describe('the docs page, in Chromium', function () {
  this.timeout(60_000)

  let browser: Browser | undefined
  let service: ServiceProcess
  /** The origin of the page that was opened last. */
  let origin: string
  const contexts: BrowserContext[] = []

  before(async function () {
    browser = await launchChromium(this)
    service = await startService()
  })
  after(async () => {
    await Promise.all(contexts.map((context) => context.close()))
    await browser?.close()
    await endProcesses()
  })

  describe('when it opens', () => {
    let page: Page

    before(async () => {
      page = (await openDocs()).page
    })
    after(() => page.context().close())

    it('shows every operation of the OpenAPI document without a click', async () => {
      const operations = await listOperations()
      expect(operations.map(({ operationId }) => operationId)).to.have.members([
        'listPets',
        'createPet',
        'getPet',
        'listOrders',
        'getUsage',
      ])
      for (const each of operations) await waitForSection(page, each)
    })

    it('marks only getPet as deprecated, only listOrders as experimental and only getUsage as beta', async () => {
      for (const each of await listOperations()) {
        const section = await waitForSection(page, each)
        expect(await section.getByText(/^deprecated$/i).count(), each.operationId).to.equal(each.operationId === 'getPet' ? 1 : 0)
        expect(await section.getByText(/^experimental$/i).count(), each.operationId).to.equal(each.operationId === 'listOrders' ? 1 : 0)
        expect(await section.getByText(/^beta$/i).count(), each.operationId).to.equal(each.operationId === 'getUsage' ? 1 : 0)
      }
    })

    it('shows no null in its examples except for a missing ban, because no other field of a response is null', async () => {
      for (const each of await listOperations()) {
        const section = await waitForSection(page, each)
        const isUsage = each.operationId === 'getUsage'
        await section
          .getByText(isUsage ? '"ban"' : '"status"')
          .first()
          .waitFor()
        const examples = (await section.innerText()).replace(isUsage ? /"ban":\s*null/ : '', '')
        expect(examples, each.operationId).to.not.match(/\bnull\b/)
      }
    })

    it('offers no hosted services of the vendor', async () => {
      for (const each of await listOperations()) await waitForSection(page, each)
      const offers = page.getByText(/\b(configure|share|deploy|ask ai|mcp|open api client)\b/i).filter({ visible: true })
      expect(await offers.allInnerTexts()).to.deep.equal([])
    })
  })

  it('sends a request with the demo key that it has filled in, and shows the pets in the response', async () => {
    const { page } = await openDocs()
    const response = await listPets(page)
    expect(await response.request().headerValue('authorization')).to.equal(`Bearer ${service.keys.free}`)
    await page.getByRole('dialog').getByText('200 OK').waitFor()
    await page.getByRole('dialog').getByText('"Rex"').waitFor()
  })

  it('fills in no key if the service does not listen on a loopback address', async () => {
    const open = await startService({ HOST: '0.0.0.0' })
    const { page } = await openDocs({ from: `http://127.0.0.1:${new URL(open.url).port}` })
    const input = page.getByPlaceholder('Token').filter({ visible: true })
    await input.waitFor()
    expect(await input.inputValue()).to.equal('')
  })

  it('shows a sample in curl, JavaScript, Python and Go for every operation, with its URL and the demo key', async () => {
    const { page } = await openDocs()
    for (const each of await listOperations()) {
      const section = await waitForSection(page, each)
      for (const [language, library] of SAMPLES) {
        await chooseSample(page, section, language, library)
        const url = `${service.url}/v1${each.path.replaceAll(/\{\w+\}/g, '1')}`
        const sample = section.locator('.scalar-card').filter({ hasText: url })
        await sample.waitFor()
        expect(await sample.innerText(), each.operationId).to.match(new RegExp(`Authorization\\W+Bearer ${service.keys.free}`))
      }
    }
  })

  it('sends requests to its own origin, even if the server URL of the document has a different one', async () => {
    const { page, problems } = await openDocs({ from: `http://localhost:${new URL(service.url).port}` })
    expect((await service.send('/openapi.json')).json.servers[0].url).to.equal(`${service.url}/v1`)
    await listPets(page)
    await page.getByRole('dialog').getByText('200 OK').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('requests nothing from another origin and does not violate its policy, from opening to the response of a request', async () => {
    const { page, requested, problems } = await openDocs()
    await loadWholePage(page)
    await listPets(page)
    const own = ['/docs', '/docs/scalar.js', '/docs/start.js', '/docs/demo-key.json', '/openapi.json', '/v1/pets'].map(
      (path) => service.url + path,
    )
    expect(requested).to.include.members(own)
    expect(requested.filter(isOtherOrigin)).to.deep.equal([])
    expect(problems).to.deep.equal([])
  })

  it('requests nothing from another origin even if its policy allows it', async () => {
    const { page, requested } = await openDocs({ bypassCSP: true })
    await loadWholePage(page)
    await listPets(page)
    expect(requested).to.include(`${service.url}/v1/pets`)
    expect(requested.filter(isOtherOrigin)).to.deep.equal([])
  })

  async function openDocs({ bypassCSP = false, from = service.url } = {}): Promise<OpenDocs> {
    if (!browser) throw new Error('There is no browser')
    origin = from
    const requested: string[] = []
    const problems: string[] = []
    const context = await browser.newContext({ bypassCSP, viewport: { width: 1440, height: 900 } })
    contexts.push(context)
    context.on('request', (request) => requested.push(request.url()))
    context.on('page', (page) => page.on('websocket', (socket) => requested.push(socket.url())))
    context.on('weberror', (webError) => problems.push(webError.error().message))
    context.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) problems.push(message.text())
    })
    // Requests to other origins are recorded, but not sent.
    await context.route(
      ({ href }) => isOtherOrigin(href),
      (route) => route.abort(),
    )

    const page = await context.newPage()
    await page.goto(`${origin}/docs`)
    return { page, requested, problems }
  }

  async function listOperations(): Promise<Operation[]> {
    const { paths } = (await service.send('/openapi.json')).json as { paths: Record<string, Record<string, Operation>> }
    return Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, { operationId, summary }]) => ({ path, method, operationId, summary })),
    )
  }

  /** Sends listPets from the page. */
  async function listPets(page: Page): Promise<Response> {
    await page.getByRole('button', { name: 'Test Request (get /pets)', exact: true }).click()
    const [received] = await Promise.all([
      page.waitForResponse((response) => response.url().startsWith(`${origin}/v1/pets`)),
      page.getByRole('dialog').getByRole('button', { name: 'Send get request to' }).click(),
    ])
    expect(received.status()).to.equal(200)
    return received
  }

  /** Scrolls to the end of the page and searches it, so that everything is loaded. */
  async function loadWholePage(page: Page): Promise<void> {
    for (const each of await listOperations()) await (await waitForSection(page, each)).scrollIntoViewIfNeeded()
    await page.getByRole('region', { name: 'Models', exact: true }).scrollIntoViewIfNeeded()
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog').getByRole('combobox').fill('orders')
    await page.getByRole('dialog').getByRole('option').first().waitFor()
    await page.keyboard.press('Escape')
  }

  function isOtherOrigin(url: string): boolean {
    return !url.startsWith(`${origin}/`) && !/^(data|blob):/.test(url)
  }
})

/** Opens the menu again if it has closed before the choice. */
async function chooseSample(page: Page, section: Locator, language: string, library: string): Promise<void> {
  const picker = section.getByTestId('client-picker')
  const option = page.getByRole('group', { name: language, exact: true }).getByRole('option', { name: library, exact: true })
  await until(
    `${language} ${library} is chosen`,
    async () => {
      if (!(await option.isVisible())) await picker.click()
      const chosen = option.click({ timeout: 1_000 })
      return chosen.then(
        () => true,
        () => false,
      )
    },
    15_000,
  )
  await picker.getByText(`${language} ${library}`).waitFor()
}

/** Waits until the section of the operation is complete, including the button that sends a request. */
async function waitForSection(page: Page, { method, path, summary }: Operation): Promise<Locator> {
  const section = page.getByRole('region', { name: summary, exact: true })
  await section.getByRole('button', { name: `Test Request (${method} ${path})`, exact: true }).waitFor()
  return section
}
