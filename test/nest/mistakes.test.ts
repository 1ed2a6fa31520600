/** What would silently handle nothing is refused when the app starts, in words that say what to do. */
import { Controller, Injectable, Module, type ModuleMetadata } from '@nestjs/common'
import { describe, expect, test } from 'vitest'
import { decorators, getBoxToken, OnceboxModule } from 'oncebox/nest'
import { Consumer, Handle, open, refusal, useBench, type Messages } from './fixture.js'

const bench = useBench('mistakes')

function expectRefusal(refused: { code?: string; message: string }, code: string, text: string): void {
  expect(refused.message).toContain(text)
  expect(refused).toMatchObject({ code })
}

const starting = (metadata: ModuleMetadata) =>
  refusal({ ...metadata, imports: [bench.root(), ...(metadata.imports ?? [])] })

describe('a consumer', () => {
  @Consumer('plain')
  class Plain {
    @Handle('order.placed') placed() {}
  }

  test('of a name that another has', async () => {
    @Consumer('plain')
    class Other {
      @Handle('order.changed') changed() {}
    }
    expectRefusal(await starting({ providers: [Plain, Other] }), 'CONSUMER_EXISTS', 'Plain and Other are both')
  })

  test('that two modules provide', async () => {
    @Module({ providers: [Plain] })
    class First {}
    @Module({ providers: [Plain] })
    class Second {}
    const refused = await starting({ imports: [First, Second] })
    expectRefusal(refused, 'CONSUMER_EXISTS', 'Plain is a provider of First and Second')
  })

  test('of a dynamic module that was made twice', async () => {
    class Billing {
      static register = (currency: string) => ({
        module: Billing,
        providers: [Plain, { provide: 'currency', useValue: currency }],
      })
    }
    const refused = await starting({ imports: [Billing.register('EUR'), Billing.register('USD')] })
    expectRefusal(refused, 'CONSUMER_EXISTS', 'keep it in a constant')
  })

  test('without handlers', async () => {
    @Consumer('idle')
    class Idle {
      placed() {}
    }
    expectRefusal(
      await starting({ providers: [Idle] }),
      'OPTION_INVALID',
      'Idle is @Consumer("idle") and has no method',
    )
  })

  test('that handles a type twice', async () => {
    @Consumer('twice')
    class Twice {
      @Handle('order.placed') first() {}
      @Handle('order.placed') second() {}
    }
    expectRefusal(await starting({ providers: [Twice] }), 'OPTION_INVALID', 'Twice handles order.placed twice')
  })

  test('of a type that is not in the vocabulary', async () => {
    const { Handle: HandleAny, Consumer: AnyConsumer } = decorators()
    @AnyConsumer('misspelt')
    class Misspelt {
      @HandleAny('order.plced') placed() {}
    }
    expectRefusal(await starting({ providers: [Misspelt] }), 'MESSAGE_TYPE_UNKNOWN', 'did you mean order.placed?')
  })

  test('that is a controller', async () => {
    @Controller()
    @Consumer('controller')
    class Both {
      @Handle('order.placed') placed() {}
    }
    expectRefusal(await starting({ controllers: [Both] }), 'OPTION_INVALID', 'Both is a controller')
  })

  test('that is no provider, unless that is allowed, or the process does not start the box', async () => {
    const stray = decorators<Messages>('stray')
    @stray.Consumer('forgotten')
    class Forgotten {
      @stray.Handle('order.placed') placed() {}
    }
    expect(Forgotten.name).toBe('Forgotten')
    const named = { name: 'stray', unprovided: 'refuse' } as const
    const refused = await refusal({ imports: [bench.root(named)] })
    expectRefusal(refused, 'OPTION_INVALID', 'Forgotten is @Consumer("forgotten") and no provider')
    await open({ imports: [bench.root({ ...named, unprovided: 'allow' })] })
    await open({ imports: [bench.root({ ...named, start: false })] })
    await open({ imports: [bench.root(named)], providers: [Forgotten] })
    // Made by somebody else, it is one all the same.
    await open({ imports: [bench.root(named)], providers: [{ provide: 'x', useFactory: () => new Forgotten() }] })
  })
})

describe('@Handle', () => {
  test('outside of a consumer', async () => {
    @Injectable()
    class Service {
      @Handle('order.placed') placed() {}
    }
    expectRefusal(
      await starting({ providers: [Service] }),
      'OPTION_INVALID',
      'Service.placed has @Handle, and Service no',
    )
  })

  test('in a controller', async () => {
    @Controller()
    class Orders {
      @Handle('order.placed') placed() {}
    }
    expectRefusal(await starting({ controllers: [Orders] }), 'OPTION_INVALID', 'Orders is a controller')
  })

  test('on what is no method, or without a type', () => {
    const onStatic = () => {
      class Static {
        @Handle('order.placed') static placed() {}
      }
      return Static
    }
    expect(onStatic).toThrow('@Handle belongs on a method of a @Consumer class; static Static.placed is none')
    expect(() => (Handle as () => unknown)()).toThrow('@Handle needs the type')
  })
})

describe('a box', () => {
  test('of a name that another has', async () => {
    expectRefusal(await starting({ imports: [bench.root()] }), 'OPTION_INVALID', 'gives the box without a name twice')
  })

  test('that a consumer names and nobody gives', async () => {
    const { Consumer: BillingConsumer } = decorators<Messages>('billing')
    @BillingConsumer('bills')
    class Bills {
      @Handle('order.placed') placed() {}
    }
    expectRefusal(await starting({ providers: [Bills] }), 'OPTION_INVALID', 'Bills is a consumer of box billing')
  })

  test('with a name that is none', () => {
    expect(() => getBoxToken('')).toThrow('a box is named by a text or by a class; got ""')
    expect(() => OnceboxModule.forRoot({ ...bench.options(), name: 7 as never })).toThrow('got 7')
  })
})

test('parameters with decorators', async () => {
  const { Body } = await import('@nestjs/common')
  @Consumer('decorated')
  class Decorated {
    @Handle('order.placed') placed(@Body() _: unknown) {}
  }
  expectRefusal(
    await starting({ providers: [Decorated] }),
    'OPTION_INVALID',
    'Decorated.placed has decorated parameters',
  )
})
