import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { callWithMessage, describe, dispatchMessage, WebSocketCloseEvent, WebSocketErrorEvent } from './events.ts'

const looked = [
  'type',
  'data',
  'origin',
  'lastEventId',
  'source',
  'target',
  'srcElement',
  'currentTarget',
  'eventPhase',
  'bubbles',
  'cancelable',
  'composed',
  'defaultPrevented',
  'returnValue',
  'cancelBubble',
  'isTrusted',
] as const

/** All that can be seen of an event. */
function seen(event: MessageEvent): unknown[] {
  const shown = looked.map((name) => event[name as keyof MessageEvent])
  return [...shown, event.ports, event.composedPath(), event instanceof Event, event instanceof MessageEvent, String(event)]
}

test('an onmessage that is alone sees what a listener sees, during the call and after it', () => {
  const target = new EventTarget()
  const events: MessageEvent[] = []
  const during: unknown[][] = []
  const take = (event: MessageEvent): void => {
    event.preventDefault()
    events.push(event)
    during.push(seen(event))
  }
  callWithMessage(take as never, target, 'text', 'ws://a')
  target.addEventListener('message', take as EventListener)
  dispatchMessage(target, 'text', 'ws://a')
  assert.equal(events.length, 2)
  assert.deepEqual(during[0], during[1])
  assert.deepEqual(during[0]?.slice(0, 3), ['message', 'text', 'ws://a'])
  assert.deepEqual(seen(events[0] as MessageEvent), seen(events[1] as MessageEvent))
  assert.deepEqual([events[0]?.currentTarget, events[0]?.target, events[0]?.eventPhase], [null, target, 0])
})

test('its time, its methods and how it prints', () => {
  callWithMessage(
    ((event: MessageEvent) => {
      const before = performance.now()
      const { timeStamp } = event
      assert.ok(timeStamp >= before && timeStamp <= performance.now())
      assert.equal(event.timeStamp, timeStamp)
      event.stopPropagation()
      event.stopImmediatePropagation()
      assert.match(inspect(event), /type: 'message'.*data: 'x'/s)
    }) as never,
    new EventTarget(),
    'x',
    'ws://a',
  )
})

test('what a handler throws, or its promise rejects with, becomes an uncaught exception as a listener’s does, and nothing else', async (t) => {
  const later: (() => void)[] = []
  t.mock.method(process, 'nextTick', (task: () => void) => void later.push(task))
  const target = new EventTarget()
  const thrown = new Error('thrown')
  const rejected = new Error('rejected')
  const fail = (): never => {
    throw thrown
  }
  callWithMessage(fail, target, 'x', '')
  callWithMessage(() => Promise.reject(rejected), target, 'x', '')
  callWithMessage(() => Promise.resolve(), target, 'x', '')
  await Promise.resolve()
  await Promise.resolve()
  await Promise.resolve()
  t.mock.restoreAll()
  assert.equal(later.length, 2)
  assert.throws(later[0] as () => void, thrown)
  assert.throws(later[1] as () => void, rejected)
})

test('the handler is called with the target as this', () => {
  const target = new EventTarget()
  callWithMessage(
    function (this: unknown) {
      assert.equal(this, target)
    } as never,
    target,
    'x',
    '',
  )
})

test('close and error events are those of the platform, where it has them', () => {
  const close = new WebSocketCloseEvent(4000, 'why', true)
  assert.deepEqual([close.type, close.code, close.reason, close.wasClean, close instanceof Event], ['close', 4000, 'why', true, true])
  const error = new WebSocketErrorEvent('what', new Error('why'))
  assert.deepEqual([error.type, error.message, (error.error as Error).message], ['error', 'what', 'why'])
  const { CloseEvent, ErrorEvent } = globalThis as unknown as Record<string, (new () => object) | undefined>
  assert.ok(CloseEvent === undefined || close instanceof CloseEvent)
  assert.ok(ErrorEvent === undefined || error instanceof ErrorEvent)
})

test('the message of an error says where, once', () => {
  assert.equal(describe('ws://a/', new Error('refused')), 'ws://a/: refused')
  assert.equal(describe('ws://a/', new Error('ws://a/: 404')), 'ws://a/: 404')
  assert.equal(describe('ws://a/', 'stop'), 'ws://a/: stop')
  assert.equal(describe('', new Error('refused')), 'refused')
  assert.equal(describe('ws://a/', undefined), 'ws://a/: undefined')
})
