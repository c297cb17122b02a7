window.attentionFrame.begin(window.attentionFigures);
