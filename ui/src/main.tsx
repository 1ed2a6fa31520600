/** Starts the interface. */
import './styles/main.css'
import { render } from 'preact'
import { App } from './app.js'
import { startKeyboard } from './keyboard.js'
import { startLive } from './live.js'
import { startNow } from './now.js'
import { loadTheRest } from './pages/index.js'
import { startReadings } from './readings.js'
import { startRouter } from './router.js'
import { loadSession } from './session.js'
import { startTheme } from './theme.js'

startTheme()
startRouter()
startKeyboard()
startNow()
startLive()
startReadings()
void loadSession()
render(<App />, document.getElementById('app')!)

const whenIdle = window.requestIdleCallback ?? ((run: () => void) => setTimeout(run, 1_000))
addEventListener('load', () => whenIdle(loadTheRest))
