/** Whether so long has passed since the component was shown: skeletons wait, so that what is quick does not flicker. */
import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'

export function usePassed(ms: number): boolean {
  const passed = useSignal(false)
  useEffect(() => {
    const timer = setTimeout(() => (passed.value = true), ms)
    return () => clearTimeout(timer)
  }, [])
  return passed.value
}
