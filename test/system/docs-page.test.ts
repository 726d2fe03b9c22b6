import { expect } from 'chai'
import type { Browser, BrowserContext, Locator, Page, Response } from 'playwright-core'
import { launchChromium } from '../support/chromium.js'
import type { ServiceProcess } from '../support/process.js'
import { endProcesses, startService } from '../support/process.js'

/** The page in a browser that remembers nothing, and what was seen of it. */
interface OpenDocs {
  readonly page: Page
  /** The address of everything that was asked for, whether or not it came. */
  readonly requested: readonly string[]
  /** Errors and warnings of the page's console, which tells of every break of the Content-Security-Policy, and uncaught errors. */
  readonly complaints: readonly string[]
}

interface Documented {
  readonly path: string
  readonly method: string
  readonly operationId: string
  readonly summary: string
}

describe('the docs page, in Chromium', function () {
  this.timeout(60_000)

  let browser: Browser | undefined
  let service: ServiceProcess
  /** Of the page that was opened last. */
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

  describe('as it is opened', () => {
    let page: Page

    before(async () => {
      page = (await openDocs()).page
    })
    after(() => page.context().close())

    it('shows every operation of the OpenAPI document, with nothing to unfold first', async () => {
      const operations = await documented()
      expect(operations.map(({ operationId }) => operationId)).to.have.members(['listPets', 'createPet', 'getPet', 'listOrders'])
      for (const each of operations) await shown(page, each)
    })

    it('marks getPet alone as deprecated, and listOrders alone as experimental', async () => {
      for (const each of await documented()) {
        const section = await shown(page, each)
        expect(await section.getByText(/^deprecated$/i).count(), each.operationId).to.equal(each.operationId === 'getPet' ? 1 : 0)
        expect(await section.getByText(/^experimental$/i).count(), each.operationId).to.equal(each.operationId === 'listOrders' ? 1 : 0)
      }
    })

    it('shows no null in its examples, for the service answers none', async () => {
      for (const each of await documented()) {
        const section = await shown(page, each)
        await section.getByText('"status"').first().waitFor()
        expect(await section.innerText(), each.operationId).to.not.match(/\bnull\b/)
      }
    })

    it('offers none of the hosted services of the one who made it', async () => {
      for (const each of await documented()) await shown(page, each)
      const offers = page.getByText(/\b(configure|share|deploy|ask ai|mcp|open api client)\b/i).filter({ visible: true })
      expect(await offers.allInnerTexts()).to.deep.equal([])
    })
  })

  it('sends a request with a demo key, and shows the pets that come back', async () => {
    const { page } = await openDocs()
    const answer = await listPets(page, service.keys.free)
    expect(await answer.request().headerValue('authorization')).to.equal(`Bearer ${service.keys.free}`)
    await page.getByRole('dialog').getByText('200 OK').waitFor()
    await page.getByRole('dialog').getByText('"Rex"').waitFor()
  })

  it('sends requests to its own origin, although the document names another server', async () => {
    const { page, complaints } = await openDocs({ from: `http://localhost:${new URL(service.url).port}` })
    expect((await service.send('/openapi.json')).json.servers[0].url).to.equal(`${service.url}/v1`)
    await listPets(page, service.keys.free)
    await page.getByRole('dialog').getByText('200 OK').waitFor()
    expect(complaints).to.deep.equal([])
  })

  it('asks nothing of another origin and keeps to its policy, from opening it to the answer of a request', async () => {
    const { page, requested, complaints } = await openDocs()
    await lookAround(page)
    await listPets(page, service.keys.free)
    const own = ['/docs', '/docs/scalar.js', '/docs/start.js', '/openapi.json', '/v1/pets'].map((path) => service.url + path)
    expect(requested).to.include.members(own)
    expect(requested.filter(isElsewhere)).to.deep.equal([])
    expect(complaints).to.deep.equal([])
  })

  it('would ask nothing of another origin even if its policy let it', async () => {
    const { page, requested } = await openDocs({ bypassCSP: true })
    await lookAround(page)
    await listPets(page, service.keys.free)
    expect(requested).to.include(`${service.url}/v1/pets`)
    expect(requested.filter(isElsewhere)).to.deep.equal([])
  })

  async function openDocs({ bypassCSP = false, from = service.url } = {}): Promise<OpenDocs> {
    if (!browser) throw new Error('There is no browser')
    origin = from
    const requested: string[] = []
    const complaints: string[] = []
    const context = await browser.newContext({ bypassCSP, viewport: { width: 1440, height: 900 } })
    contexts.push(context)
    context.on('request', (request) => requested.push(request.url()))
    context.on('page', (page) => page.on('websocket', (socket) => requested.push(socket.url())))
    context.on('weberror', (webError) => complaints.push(webError.error().message))
    context.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
    })
    // What should never be asked for is seen and goes nowhere.
    await context.route(
      ({ href }) => isElsewhere(href),
      (route) => route.abort(),
    )

    const page = await context.newPage()
    await page.goto(`${origin}/docs`)
    return { page, requested, complaints }
  }

  async function documented(): Promise<Documented[]> {
    const { paths } = (await service.send('/openapi.json')).json as { paths: Record<string, Record<string, Documented>> }
    return Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, { operationId, summary }]) => ({ path, method, operationId, summary })),
    )
  }

  /** Fills in the key and sends listPets from the page. */
  async function listPets(page: Page, key: string): Promise<Response> {
    await page.getByPlaceholder('Token').filter({ visible: true }).fill(key)
    await page.getByRole('button', { name: 'Test Request (get /pets)', exact: true }).click()
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().startsWith(`${origin}/v1/pets`)),
      page.getByRole('dialog').getByRole('button', { name: 'Send get request to' }).click(),
    ])
    expect(answer.status()).to.equal(200)
    return answer
  }

  /** To the end of the page and through its search, for what is loaded only when it is needed. */
  async function lookAround(page: Page): Promise<void> {
    for (const each of await documented()) await (await shown(page, each)).scrollIntoViewIfNeeded()
    await page.getByRole('region', { name: 'Models', exact: true }).scrollIntoViewIfNeeded()
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog').getByRole('combobox').fill('orders')
    await page.getByRole('dialog').getByRole('option').first().waitFor()
    await page.keyboard.press('Escape')
  }

  function isElsewhere(url: string): boolean {
    return !url.startsWith(`${origin}/`) && !/^(data|blob):/.test(url)
  }
})

/** The section of the operation, once it is complete and its request can be tried. */
async function shown(page: Page, { method, path, summary }: Documented): Promise<Locator> {
  const section = page.getByRole('region', { name: summary, exact: true })
  await section.getByRole('button', { name: `Test Request (${method} ${path})`, exact: true }).waitFor()
  return section
}
