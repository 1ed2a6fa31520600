/** Pauses and resumes a consumer, in all processes. What is shown changes once it is committed, not before. */
import { api } from '../api.js'
import { confirm } from '../components/confirm.js'
import { refresh } from '../live.js'
import { box } from '../router.js'
import { toast, toastError } from '../toasts.js'

type Verb = 'pause' | 'resume'

const ASKED: Readonly<Record<Verb, { text: string; verb: string; done: string; detail: string }>> = {
  pause: {
    text: 'Messages are still received and stored. What runs now runs to its end.',
    verb: 'Pause',
    done: 'is paused',
    detail: 'Messages are still received and stored',
  },
  resume: {
    text: 'Its workers take up what waits, oldest first.',
    verb: 'Resume',
    done: 'runs again',
    detail: 'Its workers take up what waits',
  },
}

export async function askToSwitch(consumer: string, verb: Verb): Promise<void> {
  const asked = ASKED[verb]
  const yes = await confirm({
    title: `${asked.verb} ${consumer}?`,
    text: asked.text,
    verb: `${asked.verb} ${consumer}`,
  })
  if (yes) await change({ box: box.value, consumer, verb, undo: true })
}

async function change(of: { box: string; consumer: string; verb: Verb; undo: boolean }): Promise<void> {
  const { consumer, verb, undo } = of
  const { done, detail } = ASKED[verb]
  try {
    await api[verb]({ box: of.box, consumer })
    toast({
      text: `${consumer} ${done}`,
      detail,
      ...(undo && {
        action: {
          label: 'Undo',
          run: () => void change({ ...of, verb: verb === 'pause' ? 'resume' : 'pause', undo: false }),
        },
      }),
    })
    await refresh()
  } catch (error) {
    toastError('Nothing was changed', error)
  }
}
